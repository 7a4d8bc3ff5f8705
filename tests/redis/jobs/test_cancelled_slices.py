"""A slice that is cut off must not keep its job from others for a whole lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import Conflict
from workstealing.jobs import (
    AsyncCounterFlush,
    AsyncRefreshAhead,
    CounterFlush,
    NamespaceBudget,
    RefreshAhead,
)


class HangingOnce:
    """A coroutine function that hangs when it is called first."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[Any] = []
        self.hangs = asyncio.Event()
        self._answer = answer

    async def __call__(self, *arguments: Any) -> Any:
        self.calls.append(arguments)
        if len(self.calls) == 1:
            self.hangs.set()
            await asyncio.Event().wait()
        return self._answer


async def cancel_when(hangs: asyncio.Event, work: Any) -> None:
    task = asyncio.ensure_future(work)
    await asyncio.wait_for(hangs.wait(), 10)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_cancelled_flush_is_followed_by_the_next_slice(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    sink = HangingOnce()
    counters = AsyncCounterFlush(any_async_redis, key_prefix, sink)
    await counters.increment("a")
    await cancel_when(sink.hangs, counters.recruited())

    assert await counters.recruited() is Duty.RECRUITED

    first, second = sink.calls
    assert first == second
    assert await counters.pending() == 0


async def test_a_reader_that_is_cancelled_does_not_leave_the_next_without_a_value(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    compute = HangingOnce("value")
    values = AsyncRefreshAhead(any_async_redis, key_prefix, compute, ttl=100)
    await cancel_when(compute.hangs, values.get("a"))

    assert await values.get("a") == "value"


async def test_all_names_that_were_cancelled_are_given_back_together(
    any_async_redis: AsyncRedis, key_prefix: str
) -> None:
    async def hang(name: str) -> str:
        hanging.add(name)
        if len(hanging) == 3:
            all_hang.set()
        await asyncio.Event().wait()
        raise AssertionError

    hanging, all_hang = set[str](), asyncio.Event()
    values = AsyncRefreshAhead(any_async_redis, key_prefix, hang, ttl=100)
    readers = [asyncio.ensure_future(values.get(name)) for name in "abc"]
    await asyncio.wait_for(all_hang.wait(), 10)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert len(await any_async_redis.keys(f"*{key_prefix}*:lease:*")) == 3

    await values.recruited()

    assert await any_async_redis.keys(f"*{key_prefix}*:lease:*") == []


def test_an_interrupted_flush_is_followed_by_the_next_slice(
    any_redis: Redis, key_prefix: str
) -> None:
    calls: list[str] = []

    def sink(batch_id: str, _: dict[str, int]) -> None:
        calls.append(batch_id)
        if len(calls) == 1:
            raise KeyboardInterrupt

    counters = CounterFlush(any_redis, key_prefix, sink)
    counters.increment("a")
    with pytest.raises(KeyboardInterrupt):
        counters.recruited()

    assert counters.recruited() is Duty.RECRUITED
    assert calls[0] == calls[1]


def test_a_slice_that_is_cut_off_before_it_hears_of_its_lease_gives_it_back(
    redis_client: Redis, key_prefix: str
) -> None:
    counters = CounterFlush(redis_client, key_prefix, lambda *_: None)
    values = RefreshAhead(redis_client, f"{key_prefix}v", str.upper, ttl=100)
    budget = NamespaceBudget(
        redis_client, f"{key_prefix}b", f"{key_prefix}k", most_keys=0
    )
    counters.increment("a")
    redis_client.set(f"{key_prefix}k1", "")
    budget.add(f"{key_prefix}k1")

    cut_off(counters._driver, counters._steps.flush(), steps=1)
    cut_off(values._driver, values._steps.get("a"), steps=2)
    cut_off(budget._driver, budget._steps.enforce(), steps=1)

    assert counters.recruited() is Duty.RECRUITED
    assert values.get("a") == "A"
    assert budget.recruited() is Duty.RECRUITED


def test_a_lease_that_is_held_by_another_now_is_not_taken_away(
    any_redis: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    cut, other = (
        CounterFlush(any_redis, key_prefix, lambda *_: None) for _ in range(2)
    )
    cut.increment("a")
    cut_off(cut._driver, cut._steps.flush(), steps=1)
    any_redis.unlink(f"{{{key_prefix}}}:lease")  # it runs out
    flush = stepped(other._driver, other._steps.flush())
    flush.step()

    with pytest.raises(Conflict):
        cut.recruited()

    assert flush.finish() is Duty.RECRUITED


def cut_off(driver: Any, flow: Any, steps: int) -> None:
    """Let the server do so many steps, and drop the slice before the last reply."""
    step = next(flow)
    for _ in range(steps - 1):
        step = flow.send(driver._perform(step))
    driver._perform(step)
    flow.close()
