"""Which of our errors each error of redis-py becomes."""

from __future__ import annotations

import pytest
from redis import exceptions

from workstealing.drivers.translate import CLIENT_ERRORS, is_wrong_server, translated
from workstealing.errors import (
    RedisError,
    RedisOutOfMemory,
    RedisReadOnly,
    RedisUnavailable,
    ServerTooOld,
    WrongType,
)

SCRIPT_OF_6_2 = "Error running script (call to f_0a1b): @user_script:3: "


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.ConnectionError("Error 111 connecting"), RedisUnavailable),
        (exceptions.TimeoutError("Timeout reading"), RedisUnavailable),
        (exceptions.BusyLoadingError("loading the dataset"), RedisUnavailable),
        (exceptions.MasterDownError("Link with MASTER is down"), RedisUnavailable),
        (exceptions.ClusterDownError("Hash slot not served"), RedisUnavailable),
        (exceptions.ClusterError("TTL exhausted."), RedisUnavailable),
        (exceptions.TryAgainError("Multiple keys"), RedisUnavailable),
        (exceptions.SlotNotCoveredError("Slot 3 is not covered"), RedisUnavailable),
        (
            exceptions.RedisClusterException("Redis Cluster cannot be connected. …"),
            RedisUnavailable,
        ),
        (ConnectionRefusedError(111, "refused"), RedisUnavailable),
        (exceptions.ResponseError("BUSY Redis is busy running"), RedisUnavailable),
        (exceptions.ReadOnlyError("You can't write"), RedisReadOnly),
        (exceptions.ResponseError("NOREPLICAS Not enough"), RedisReadOnly),
        (exceptions.ResponseError("MISCONF Redis is configured"), RedisReadOnly),
        (
            exceptions.ResponseError(SCRIPT_OF_6_2 + "-READONLY You can't write"),
            RedisReadOnly,
        ),
        (exceptions.OutOfMemoryError("command not allowed"), RedisOutOfMemory),
        (
            exceptions.ResponseError(SCRIPT_OF_6_2 + "-OOM command not allowed"),
            RedisOutOfMemory,
        ),
        (exceptions.ResponseError("WRONGTYPE Operation against"), WrongType),
        (
            exceptions.ResponseError(SCRIPT_OF_6_2 + "WRONGTYPE Operation against"),
            WrongType,
        ),
        (exceptions.ResponseError("unknown command 'HPEXPIRE'"), ServerTooOld),
        (
            exceptions.ResponseError("Unknown Redis command called from script"),
            ServerTooOld,
        ),
        (exceptions.ResponseError("unknown subcommand 'LATEST'"), ServerTooOld),
        (exceptions.ResponseError("BUSYGROUP Consumer Group name exists"), RedisError),
        (exceptions.ResponseError("no such key 'x BUSY y'"), RedisError),
        (exceptions.AuthenticationError("invalid password"), RedisError),
        (exceptions.NoPermissionError("no permissions"), RedisError),
        (
            exceptions.RedisClusterException("EVAL - all keys must map to one slot"),
            RedisError,
        ),
    ],
)
def test_each_error_becomes_the_right_one(
    error: Exception, kind: type[RedisError]
) -> None:
    assert isinstance(error, CLIENT_ERRORS)

    ours = translated(error)

    assert type(ours) is kind
    assert str(error) in str(ours)


def test_an_error_without_words_is_named() -> None:
    assert "TimeoutError" in str(translated(exceptions.TimeoutError()))


def test_a_cluster_taken_for_a_single_server_is_told() -> None:
    ours = translated(exceptions.MovedError("866 10.0.0.1:7001"))

    assert "redis+cluster://" in str(ours)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ReadOnlyError("You can't write against a read only replica."),
        exceptions.ResponseError(SCRIPT_OF_6_2 + "-READONLY You can't write"),
        exceptions.ResponseError("READONLY You can't write"),
        exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
        exceptions.ResponseError(SCRIPT_OF_6_2 + "-LOADING Redis is loading"),
        exceptions.MasterDownError("Link with MASTER is down"),
        exceptions.ClusterDownError("The cluster is down"),
        exceptions.TryAgainError("Multiple keys request during rehashing"),
        exceptions.ResponseError("UNBLOCKED force unblock from blocking operation"),
        exceptions.ConnectionError("The previous master is now a slave"),
    ],
)
def test_a_server_that_refuses_because_of_its_role_or_state_may_be_the_wrong_one(
    error: Exception,
) -> None:
    assert is_wrong_server(error)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ConnectionError("Error 111 connecting"),
        exceptions.TimeoutError("Timeout reading"),
        exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."),
        exceptions.ResponseError("MISCONF Redis is configured"),
        exceptions.ResponseError("BUSY Redis is busy running a script"),
        exceptions.ResponseError("no such key 'x READONLY y'"),
        exceptions.OutOfMemoryError("command not allowed"),
        OSError("READONLY file system"),
    ],
)
def test_a_server_that_is_away_full_or_busy_is_still_the_right_one(
    error: Exception,
) -> None:
    assert not is_wrong_server(error)


@pytest.mark.parametrize("text", ["Too many connections", "No connection available."])
def test_an_exhausted_pool_of_the_client_is_not_blamed_on_the_server(text: str) -> None:
    ours = translated(exceptions.ConnectionError(text))

    assert type(ours) is RedisUnavailable
    assert "give it more by max_connections=" in str(ours)
    assert "did not answer" not in str(ours)


def test_a_command_that_is_unknown_may_be_renamed_or_forbidden() -> None:
    ours = translated(exceptions.ResponseError("unknown command 'EVALSHA'"))

    assert "Redis >= 6.2 is needed, or the command was renamed" in str(ours)
