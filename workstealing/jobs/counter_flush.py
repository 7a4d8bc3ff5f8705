"""Counters that are cheap to increment, and reach their store in batches.

`increment` is one `HINCRBY`. A slice takes up to *batch* counters as one batch with an
id of its own, passes it to the sink, and deletes it only after the sink has returned.
A recruit that dies in between leaves its batch, and a later one passes the same counts
to the sink under the **same batch id**. There is one batch at a time; increments made
meanwhile are in a later batch. Newest servers: none writes counters elsewhere.

**The sink must be idempotent on the batch id**: it may be called twice with one batch,
when a recruit died after the sink returned, or took longer than its *lease*. A sink
that adds the counts and records the id in one transaction, and does nothing if the id
is recorded, counts exactly once. A sink that does not may count twice. Batch ids
begin with the server's time in ms, so old records can be deleted by age.

What can be wrong: an `increment` that raised may or may not have been counted; a client
of your own with retries, as redis-py makes them, may count one twice. And what the
server itself loses is lost, without persistence or by evicting the keys of the job.

If others write into the hash, a name that is not UTF-8 reaches the sink with
backslashes (`\\xff`), which any store can take; a value that is not a number stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing._checks import (
    checked_batch,
    checked_text,
    checked_whole,
    milliseconds,
)
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import Conflict
from workstealing.jobs.job_keys import beside, checked_key, lossless_text
from workstealing.jobs.job_leases import AbandonedLeases, releasing_on_error
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_hook,
    call_script,
    duty_of,
)
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncCounterFlush", "CounterFlush")

_NOTHING, _BUSY = 0, 1

Sink: TypeAlias = Callable[[str, dict[str, int]], Any]
AsyncSink: TypeAlias = Callable[[str, dict[str, int]], Awaitable[Any]]


class CounterFlush(RedisJob):
    """Write-behind counters.

    `sink(batch_id, counts)` adds counts to the store, once per batch id. *lease* must
    be longer than the sink ever takes.
    """

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        sink: Sink,
        *,
        batch: int = 100,
        lease: float | timedelta = 30.0,
    ) -> None:
        super().__init__(redis)
        self._steps = _CounterFlushSteps(key, sink, batch, lease)

    def increment(self, name: str, by: int = 1) -> int:
        """Add to a counter; return the part that is not in a batch yet."""
        return self._driver.call(self._steps.increment(name, by))

    def pending(self) -> int:
        """Return how many counters the sink has not confirmed yet."""
        return self._driver.run(self._steps.pending())

    def recruited(self) -> Duty:
        """Pass up to *batch* counters to the sink."""
        return self._driver.run(self._steps.flush())


class AsyncCounterFlush(AsyncRedisJob):
    """`CounterFlush` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        sink: Sink | AsyncSink,
        *,
        batch: int = 100,
        lease: float | timedelta = 30.0,
    ) -> None:
        super().__init__(redis)
        self._steps = _CounterFlushSteps(key, sink, batch, lease)

    async def increment(self, name: str, by: int = 1) -> int:
        """Add to a counter; return the part that is not in a batch yet."""
        return await self._driver.call(self._steps.increment(name, by))

    async def pending(self) -> int:
        """Return how many counters the sink has not confirmed yet."""
        return await self._driver.run(self._steps.pending())

    async def recruited(self) -> Duty:
        """Pass up to *batch* counters to the sink."""
        return await self._driver.run(self._steps.flush())


class _CounterFlushSteps:
    """The steps of both classes: what they ask of Redis and of the sink."""

    def __init__(
        self, key: str, sink: Sink, batch: int, lease: float | timedelta
    ) -> None:
        self._counters = checked_key(key)
        self._taken = beside(key, "taken")
        self._lease = beside(key, "lease")
        self._keys = {
            "counters": self._counters,
            "taken": self._taken,
            "batch": beside(key, "batch"),
            "lease": self._lease,
        }
        self._sink = sink
        self._batch = checked_batch(batch)
        self._lease_ms = milliseconds(lease, "lease")
        self._abandoned = AbandonedLeases()

    def increment(self, name: str, by: int) -> RedisCommand[int]:
        number = checked_whole(by, "by", -(2**63), 2**63 - 1)
        words = ("HINCRBY", self._counters, checked_text(name), number)
        return RedisCommand(words, int)

    def pending(self) -> Flow[int]:
        waiting = yield from ask(RedisCommand(("HLEN", self._counters), int))
        return waiting + (yield from ask(RedisCommand(("HLEN", self._taken), int)))

    def flush(self) -> Flow[Duty]:
        yield from self._abandoned.release_all()
        return (yield from self._abandoned.watching(self._lease, self._flush))

    def _flush(self, token: str) -> Flow[Duty]:
        first, *flat = yield from ask(self._take(token))
        if first == _NOTHING:
            return Duty.DISMISSED
        if first == _BUSY:
            raise Conflict("another recruit is passing a batch of counters to the sink")
        counts = _counts(flat)
        work = self._deliver(lossless_text(first), counts, token)
        yield from releasing_on_error(self._lease, token, work)
        return duty_of(len(counts), more=len(counts) >= self._batch)

    def _deliver(self, batch_id: str, counts: dict[str, int], token: str) -> Flow[None]:
        yield from call_hook(self._sink, batch_id, counts)
        yield from ask(self._forget(batch_id, token))

    def _take(self, token: str) -> Call[list[Any]]:
        return call_script(
            "counter_take",
            self._keys,
            list,
            is_raw=True,
            most=self._batch,
            token=token,
            lease_ms=self._lease_ms,
        )

    def _forget(self, batch_id: str, token: str) -> Call[bool]:
        return call_script("counter_done", self._keys, bool, id=batch_id, token=token)


def _counts(flat: list[Any]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, count in zip(flat[::2], flat[1::2], strict=True):
        # Two names may decode to the same text: neither count may get lost.
        counts[name.decode(errors="backslashreplace")] += int(count)
    return dict(counts)
