from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, HookFailed, RedisError
from workstealing.jobs import AsyncPendingReclaim, PendingReclaim
from workstealing.testing import Server, wait_until


class Handler:
    """Notes what it handled, and fails for some."""

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self.failing: set[bytes] = set()

    def __call__(self, entry_id: str, fields: dict[Any, Any]) -> None:
        number = fields[b"number"]
        self.handled.append(number)
        if number in self.failing:
            raise LookupError(f"cannot do {number!r}")


@pytest.fixture
def handler() -> Handler:
    return Handler()


def begin(client: Redis, stream: str, entries: int) -> list[bytes]:
    """Deliver entries to a consumer that is never heard of again."""
    client.xgroup_create(stream, "group", mkstream=True)
    ids = [client.xadd(stream, {"number": n}) for n in range(entries)]
    client.xreadgroup("group", "lost", {stream: ">"})
    return ids


def reclaim_from(
    client: Redis, stream: str, handler: Handler, **options: Any
) -> PendingReclaim:
    return PendingReclaim(
        client, stream, "group", handler, **{"idle": 0.001, **options}
    )


def silence(client: Redis, stream: str) -> None:
    """Wait until every pending entry is older than a millisecond."""

    def all_silent() -> bool:
        entries = client.xpending_range(stream, "group", "-", "+", 1000)
        return all(entry["time_since_delivered"] > 2 for entry in entries)

    wait_until(all_silent, 10, "silence")


def test_entries_of_a_lost_consumer_are_handled_and_acknowledged(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    begin(any_redis, key_prefix, 5)
    job = reclaim_from(any_redis, key_prefix, handler)
    assert job.pending() == 5
    silence(any_redis, key_prefix)

    assert job.recruited() is Duty.RECRUITED

    assert sorted(handler.handled) == [b"0", b"1", b"2", b"3", b"4"]
    assert job.pending() == 0
    assert job.recruited() is Duty.DISMISSED


def test_entries_of_a_living_consumer_are_left_alone(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    begin(any_redis, key_prefix, 5)
    job = reclaim_from(any_redis, key_prefix, handler, idle=60)

    assert job.recruited() is Duty.DISMISSED

    assert handler.handled == []
    assert job.pending() == 5


def test_slices_go_on_where_the_last_one_stopped(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    begin(any_redis, key_prefix, 7)
    silence(any_redis, key_prefix)

    duties = [
        reclaim_from(any_redis, key_prefix, handler, batch=3).recruited()
        for _ in range(3)
    ]

    assert duties == [Duty.MORE, Duty.MORE, Duty.RECRUITED]
    assert len(set(handler.handled)) == len(handler.handled) == 7


def test_an_entry_whose_handler_failed_stays_pending_and_the_others_are_done(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    begin(any_redis, key_prefix, 3)
    handler.failing = {b"0"}
    job = reclaim_from(any_redis, key_prefix, handler)
    silence(any_redis, key_prefix)

    with pytest.raises(HookFailed, match="LookupError"):
        job.recruited()

    assert len(handler.handled) == 3
    assert job.pending() == 1
    handler.failing.clear()
    silence(any_redis, key_prefix)
    job.recruited()
    assert job.pending() == 0


def test_an_entry_that_always_fails_becomes_one_dead_letter(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    (origin,) = begin(any_redis, key_prefix, 1)
    handler.failing = {b"0"}
    job = reclaim_from(any_redis, key_prefix, handler, max_deliveries=3)

    for _ in range(2):
        silence(any_redis, key_prefix)
        with pytest.raises(HookFailed, match="LookupError"):
            job.recruited()
    silence(any_redis, key_prefix)
    assert job.recruited() is Duty.RECRUITED

    assert (job.pending(), job.dead()) == (0, 1)
    ((_, letter),) = any_redis.xrange(f"{{{key_prefix}}}:dead:group")
    assert letter == {
        b"ws-origin": origin,
        b"ws-group": b"group",
        b"ws-deliveries": b"4",
        b"number": b"0",
    }
    assert len(handler.handled) == 2


def test_burying_an_entry_twice_writes_one_letter(
    any_redis: Redis,
    key_prefix: str,
    handler: Handler,
    stepped: Callable[..., Any],
) -> None:
    begin(any_redis, key_prefix, 1)
    job = reclaim_from(any_redis, key_prefix, handler, max_deliveries=1)
    silence(any_redis, key_prefix)
    slices = []
    for _ in range(2):
        silence(any_redis, key_prefix)
        slices.append(stepped(job._driver, job._steps.reclaim()))
        slices[-1].step()

    for each in slices:
        each.finish()

    assert (job.pending(), job.dead()) == (0, 1)


def test_a_deleted_entry_is_acknowledged(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    ids = begin(any_redis, key_prefix, 2)
    any_redis.xdel(key_prefix, ids[0])
    job = reclaim_from(any_redis, key_prefix, handler)
    silence(any_redis, key_prefix)

    job.recruited()

    assert handler.handled == [b"1"]
    assert job.pending() == 0


def test_what_a_dead_recruit_claimed_is_claimed_again(
    any_redis: Redis,
    key_prefix: str,
    handler: Handler,
    stepped: Callable[..., Any],
) -> None:
    begin(any_redis, key_prefix, 3)
    job = reclaim_from(any_redis, key_prefix, handler)
    silence(any_redis, key_prefix)
    died = stepped(job._driver, job._steps.reclaim())
    died.step()
    del died
    assert job.pending() == 3
    silence(any_redis, key_prefix)

    job.recruited()

    assert len(handler.handled) == 3
    assert job.pending() == 0


def test_a_stream_that_does_not_exist_is_no_work(
    any_redis: Redis, key_prefix: str, handler: Handler
) -> None:
    job = reclaim_from(any_redis, key_prefix, handler)

    assert job.recruited() is Duty.DISMISSED


def test_a_group_that_does_not_exist_is_an_error_that_names_it(
    redis_client: Redis, key_prefix: str, handler: Handler
) -> None:
    redis_client.xadd(key_prefix, {"number": 0})

    with pytest.raises(RedisError, match="group"):
        reclaim_from(redis_client, key_prefix, handler).recruited()


def test_wrong_arguments_are_refused(fake_redis: Redis, handler: Handler) -> None:
    for wrong in (
        {"idle": 0},
        {"max_deliveries": 0},
        {"dead_most": 0},
        {"batch": 0},
    ):
        with pytest.raises(ConfigurationError):
            reclaim_from(fake_redis, "stream", handler, **wrong)


def test_two_recruits_at_once_handle_each_entry_once(
    redis_server: Server,
    key_prefix: str,
    handler: Handler,
    both_at_once: Callable[..., list[Any]],
) -> None:
    with (
        Redis.from_url(redis_server.url) as one,
        Redis.from_url(redis_server.url) as two,
    ):
        begin(one, key_prefix, 40)
        wait_until(
            lambda: all(
                entry["time_since_delivered"] > 200
                for entry in one.xpending_range(key_prefix, "group", "-", "+", 100)
            ),
            10,
            "silence",
        )
        jobs = [
            reclaim_from(client, key_prefix, handler, batch=40, idle=0.2)
            for client in (one, two)
        ]

        both_at_once(*(job.recruited for job in jobs))

        assert len(handler.handled) == 40
        assert jobs[0].pending() == 0


async def test_the_asyncio_face_does_the_same(
    async_redis_client: AsyncRedis,
    redis_client: Redis,
    key_prefix: str,
    handler: Handler,
) -> None:
    async def handle(entry_id: str, fields: dict[Any, Any]) -> None:
        handler(entry_id, fields)

    begin(redis_client, key_prefix, 3)
    silence(redis_client, key_prefix)
    job = AsyncPendingReclaim(
        async_redis_client, key_prefix, "group", handle, idle=0.001
    )
    assert await job.pending() == 3

    assert await job.recruited() is Duty.RECRUITED

    assert len(handler.handled) == 3
    assert (await job.pending(), await job.dead()) == (0, 0)
