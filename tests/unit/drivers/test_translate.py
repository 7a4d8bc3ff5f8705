"""Which of our errors each error of redis-py becomes."""

from __future__ import annotations

import pytest
from redis import exceptions

from workstealing.drivers.translate import CLIENT_ERRORS, translated
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
