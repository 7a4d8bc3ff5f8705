from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, Conflict, HookFailed
from workstealing.jobs import AsyncCounterFlush, CounterFlush
from workstealing.testing import Server


class Store:
    """A sink that counts each batch once, and can fail."""

    def __init__(self) -> None:
        self.batches: dict[str, dict[str, int]] = {}
        self.calls: list[str] = []
        self.failing = False

    def __call__(self, batch_id: str, counts: dict[str, int]) -> None:
        self.calls.append(batch_id)
        if self.failing:
            raise LookupError("the database is away")
        assert self.batches.setdefault(batch_id, counts) == counts

    @property
    def totals(self) -> dict[str, int]:
        sums: Counter[str] = Counter()
        for counts in self.batches.values():
            sums.update(counts)
        return dict(sums)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def counters(any_redis: Redis, key_prefix: str, store: Store) -> CounterFlush:
    return CounterFlush(any_redis, key_prefix, store)


def test_counts_reach_the_sink_in_one_batch(
    counters: CounterFlush, store: Store
) -> None:
    assert counters.increment("a") == 1
    assert counters.increment("a", 4) == 5
    counters.increment("b", -2)
    assert counters.pending() == 2

    assert counters.recruited() is Duty.RECRUITED

    assert list(store.batches.values()) == [{"a": 5, "b": -2}]
    assert counters.pending() == 0
    assert counters.recruited() is Duty.DISMISSED


def test_any_name_may_be_counted(counters: CounterFlush, store: Store) -> None:
    for name in ("", "a b", "ä", "{x}"):
        counters.increment(name)

    counters.recruited()

    assert store.totals == {"": 1, "a b": 1, "ä": 1, "{x}": 1}


@pytest.mark.parametrize("by", [1.5, "1", True, None, 2**63])
def test_a_counter_grows_by_a_whole_number(counters: CounterFlush, by: Any) -> None:
    with pytest.raises(ConfigurationError, match="by must be"):
        counters.increment("a", by)

    assert counters.pending() == 0


def test_every_flush_has_its_own_batch_id(counters: CounterFlush, store: Store) -> None:
    for _ in range(3):
        counters.increment("a")
        counters.recruited()

    assert len(set(store.calls)) == 3
    assert store.totals == {"a": 3}


def test_a_batch_is_bounded(any_redis: Redis, key_prefix: str, store: Store) -> None:
    counters = CounterFlush(any_redis, key_prefix, store, batch=2)
    for n in range(5):
        counters.increment(f"c{n}", n)

    duties = [counters.recruited() for _ in range(4)]

    assert duties == [Duty.MORE, Duty.MORE, Duty.RECRUITED, Duty.DISMISSED]
    assert store.totals == {f"c{n}": n for n in range(5)}


def test_a_batch_whose_sink_failed_is_tried_again_with_the_same_id(
    counters: CounterFlush, store: Store
) -> None:
    counters.increment("a")
    store.failing = True
    with pytest.raises(HookFailed, match="LookupError"):
        counters.recruited()
    counters.increment("a")
    store.failing = False

    counters.recruited()
    counters.recruited()

    assert store.calls[0] == store.calls[1] != store.calls[2]
    assert list(store.batches.values()) == [{"a": 1}, {"a": 1}]


def test_a_later_recruit_takes_over_the_batch_of_one_that_died(
    counters: CounterFlush,
    store: Store,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
) -> None:
    counters.increment("a", 3)
    died = stepped(counters._driver, counters._steps.flush())
    died.step()
    died.step()
    del died
    any_redis.unlink(f"{{{key_prefix}}}:lease")  # it runs out

    assert counters.recruited() is Duty.RECRUITED

    assert store.calls[0] == store.calls[1]
    assert store.totals == {"a": 3}
    assert counters.pending() == 0


def test_the_keys_of_a_batch_are_there_until_the_sink_has_it(
    counters: CounterFlush, stepped: Callable[..., Any]
) -> None:
    counters.increment("a")
    flush = stepped(counters._driver, counters._steps.flush())

    flush.step()
    assert counters.pending() == 1
    flush.step()
    assert counters.pending() == 1
    flush.step()
    assert counters.pending() == 0


def test_a_recruit_that_finds_another_at_it_says_so(
    counters: CounterFlush, stepped: Callable[..., Any], store: Store
) -> None:
    counters.increment("a")
    flush = stepped(counters._driver, counters._steps.flush())
    flush.step()

    with pytest.raises(Conflict):
        counters.recruited()

    flush.finish()
    assert len(store.calls) == 1


def test_a_slow_recruit_does_not_forget_the_batch_of_the_next_one(
    counters: CounterFlush,
    store: Store,
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
) -> None:
    counters.increment("a")
    slow = stepped(counters._driver, counters._steps.flush())
    slow.step()
    slow.step()
    any_redis.unlink(f"{{{key_prefix}}}:lease")
    counters.recruited()
    counters.increment("a", 10)
    following = stepped(counters._driver, counters._steps.flush())
    following.step()

    slow.finish()

    assert counters.pending() == 1
    with pytest.raises(Conflict):
        counters.recruited()
    following.finish()
    assert store.totals == {"a": 11}


def test_a_lease_has_an_end(any_redis: Redis, key_prefix: str, store: Store) -> None:
    counters = CounterFlush(any_redis, key_prefix, store, lease=5)
    ends: list[int] = []
    counters._steps._sink = lambda *_: ends.append(
        any_redis.pttl(f"{{{key_prefix}}}:lease")
    )
    counters.increment("a")

    counters.recruited()

    assert 0 < ends[0] <= 5000
    assert not any_redis.exists(f"{{{key_prefix}}}:lease")


def test_wrong_arguments_are_refused(fake_redis: Redis, store: Store) -> None:
    with pytest.raises(ConfigurationError):
        CounterFlush(fake_redis, "", store)
    with pytest.raises(ConfigurationError):
        CounterFlush(fake_redis, "key", store, batch=0)
    with pytest.raises(ConfigurationError):
        CounterFlush(fake_redis, "key", store, lease=0)


def test_of_two_recruits_at_once_one_flushes(
    redis_server: Server,
    key_prefix: str,
    store: Store,
    both_at_once: Callable[..., list[Any]],
) -> None:
    refused = Event()

    def hold(batch_id: str, counts: dict[str, int]) -> None:
        assert refused.wait(10)
        store(batch_id, counts)

    def work(counters: CounterFlush) -> Duty | None:
        try:
            return counters.recruited()
        except Conflict:
            refused.set()
            return None

    with (
        Redis.from_url(redis_server.url) as one,
        Redis.from_url(redis_server.url) as two,
    ):
        flushers = [CounterFlush(client, key_prefix, hold) for client in (one, two)]
        flushers[0].increment("a", 7)

        answers = both_at_once(*(lambda f=f: work(f) for f in flushers))

    assert set(answers) == {Duty.RECRUITED, None}
    assert store.totals == {"a": 7}


async def test_the_asyncio_face_does_the_same(
    any_async_redis: AsyncRedis, key_prefix: str, store: Store
) -> None:
    async def sink(batch_id: str, counts: dict[str, int]) -> None:
        store(batch_id, counts)

    counters = AsyncCounterFlush(any_async_redis, key_prefix, sink)
    assert await counters.increment("a", 2) == 2
    assert await counters.pending() == 1

    assert await counters.recruited() is Duty.RECRUITED

    assert store.totals == {"a": 2}
    assert await counters.pending() == 0
