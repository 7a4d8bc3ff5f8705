"""Counters that are cheap to increment, and reach their store in batches.

`increment` is one `HINCRBY`. A slice takes up to *batch* counters as one batch with an
id of its own, gives it to the sink, and forgets it only when the sink has returned.
A recruit that dies in between leaves its batch, and a later one gives the same counts
under the **same batch id** to the sink. There is one batch at a time; increments go on
meanwhile and are in a later batch. Newest servers: none writes counters elsewhere.

**The sink must be idempotent on the batch id**: it may be called twice with one batch,
when a recruit died after the sink returned, or took longer than its *lease*. A sink
that adds the counts and records the id in one transaction, and does nothing if the id
is recorded, counts exactly once. One that does not can count money double. Batch ids
begin with the server's time in ms, so old records can be deleted by age.

What can be lost: an `increment` that raised may or may not have been counted (it is
never retried by us), and what the server itself loses, without persistence or by
evicting our keys.

Of what others write into the hash, a name that is not UTF-8 reaches the sink with
backslashes (`\\xff`), which any store can take; a value that is no count stays there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import Conflict
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob, duty
from workstealing.jobs.leasing import Leases, guarded, new_token
from workstealing.jobs.naming import beside, checked_key, checked_name
from workstealing.jobs.telling import consult
from workstealing.jobs.wording import text
from workstealing.queue.call import Call, Command, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncCounterFlush", "CounterFlush")

_NOTHING, _BUSY = 0, 1

Sink: TypeAlias = Callable[[str, dict[str, int]], Any]
AsyncSink: TypeAlias = Callable[[str, dict[str, int]], Awaitable[Any]]


class CounterFlush(RedisJob):
    """Write-behind counters; the sync face.

    `sink(batch_id, counts)` adds counts to the store, once per batch id. *lease* is
    longer than the sink ever takes.
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
        self._body = _Body(key, sink, batch, lease)

    def increment(self, name: str, by: int = 1) -> int:
        """Count; return what is not in a batch yet."""
        return self._driver.call(self._body.increment(name, by))

    def pending(self) -> int:
        """Return how many counters the sink has not confirmed yet."""
        return self._driver.run(self._body.pending())

    def recruited(self) -> Duty:
        """Give up to *batch* counters to the sink."""
        return self._driver.run(self._body.flush())


class AsyncCounterFlush(AsyncRedisJob):
    """Write-behind counters; the asyncio face.

    `sink(batch_id, counts)` adds counts to the store, once per batch id. *lease* is
    longer than the sink ever takes.
    """

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
        self._body = _Body(key, sink, batch, lease)

    async def increment(self, name: str, by: int = 1) -> int:
        """Count; return what is not in a batch yet."""
        return await self._driver.call(self._body.increment(name, by))

    async def pending(self) -> int:
        """Return how many counters the sink has not confirmed yet."""
        return await self._driver.run(self._body.pending())

    async def recruited(self) -> Duty:
        """Give up to *batch* counters to the sink."""
        return await self._driver.run(self._body.flush())


class _Body:
    """What both faces ask of Redis and of the sink."""

    def __init__(
        self, key: str, sink: Sink, batch: int, lease: float | timedelta
    ) -> None:
        self._counters = checked_key(key)
        self._taken = beside(key, "taken")
        self._batch_id = beside(key, "batch")
        self._lease = beside(key, "lease")
        self._sink = sink
        self._batch = checked_batch(batch)
        self._lease_ms = milliseconds(lease, "lease")
        self._leases = Leases()

    def increment(self, name: str, by: int) -> Command[int]:
        return Command(("HINCRBY", self._counters, checked_name(name), by), int)

    def pending(self) -> Flow[int]:
        waiting = yield from ask(Command(("HLEN", self._counters), int))
        return waiting + (yield from ask(Command(("HLEN", self._taken), int)))

    def flush(self) -> Flow[Duty]:
        yield from self._leases.give_back()
        token = new_token()
        work = self._flush(token)
        return (yield from self._leases.noting(self._lease, token, work))

    def _flush(self, token: str) -> Flow[Duty]:
        first, *flat = yield from ask(self._take(token))
        if first == _NOTHING:
            return Duty.DISMISSED
        if first == _BUSY:
            raise Conflict("another recruit gives a batch of counters to the sink")
        counts = _counts(flat)
        work = self._deliver(text(first), counts, token)
        yield from guarded(self._lease, token, work)
        return duty(len(counts), self._batch)

    def _deliver(self, batch_id: str, counts: dict[str, int], token: str) -> Flow[None]:
        yield from consult(self._sink, batch_id, counts)
        yield from ask(self._forget(batch_id, token))

    def _take(self, token: str) -> Call[list[Any]]:
        keys = (self._counters, self._taken, self._batch_id, self._lease)
        limits = (self._batch, token, self._lease_ms)
        script = load_script(__package__, "counter_take")
        return Call(script, keys, limits, list, is_raw=True)

    def _forget(self, batch_id: str, token: str) -> Call[bool]:
        keys = (self._taken, self._batch_id, self._lease)
        script = load_script(__package__, "counter_done")
        return Call(script, keys, (batch_id, token), bool)


def _counts(flat: list[Any]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, count in zip(flat[::2], flat[1::2], strict=True):
        # Two names may read alike: what is counted must not get lost.
        counts[name.decode(errors="backslashreplace")] += int(count)
    return dict(counts)
