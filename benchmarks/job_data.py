"""Much data for each ready-made job, and a slice's worth of garbage to put into it.

Data is filled in bulk, past the jobs where they take one item at a time, in the form in
which they keep it; then a reader of the job must find it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from workstealing.drivers.sync_driver import Client
from workstealing.jobs import (
    CounterFlush,
    DeadMembers,
    IndexRepair,
    KeepUntil,
    MissingTTL,
    NamespaceBudget,
    PendingReclaim,
    QueueTracker,
    RefreshAhead,
    VolatileHash,
    WindowTrimmer,
)
from workstealing.recruiting.job import Job

__all__ = ("ALL", "Data", "Make")

_KEY = "{bench}"
_CHUNK = 1000
_PAST, _FUTURE = 1, 4_000_000_000_000


@dataclass(frozen=True, slots=True)
class Data:
    """A job with its data, and how to put garbage in."""

    client: Client
    job: Job
    litter: Callable[[], object]
    turns: int = 1
    """Slices that differ by turns are timed together."""


Make: TypeAlias = Callable[[Client, int], Data]


def _volatile_hash(client: Client, size: int) -> Data:
    job = VolatileHash(client, _KEY, on_expire=_nothing)

    def put(pipeline: Any, numbers: range, expires: int = _FUTURE) -> None:
        pipeline.hset(_KEY, mapping={f"field-{n}": "value" for n in numbers})
        pipeline.zadd(f"{_KEY}:expires", {f"field-{n}": expires for n in numbers})

    _fill(client, size, put)
    assert job.get("field-7") == b"value"
    return Data(client, job, lambda: put(client, range(size, size + 100), _PAST))


def _keep_until(client: Client, size: int) -> Data:
    job = KeepUntil(client, _KEY)

    def put(pipeline: Any, numbers: range, until: int = _FUTURE) -> None:
        pipeline.mset({f"{_KEY}:value:name-{n}": "value" for n in numbers})
        pipeline.zadd(f"{_KEY}:deadlines", {f"name-{n}": until for n in numbers})

    _fill(client, size, put)
    assert job.get("name-7") == b"value"
    return Data(client, job, lambda: put(client, range(size, size + 100), _PAST))


def _queue_tracker(client: Client, size: int) -> Data:
    table = [f"{n:08}" for n in range(size)]
    rows = set(table)

    def next_rows(after: str | None, most: int) -> list[str]:
        first = bisect_right(table, after or "")
        return table[first : first + most]

    job = QueueTracker(
        client, _KEY, next_rows=next_rows, still_there=lambda ids: rows & set(ids)
    )
    for start in range(0, size, _CHUNK):
        job.add(*table[start : start + _CHUNK])
    # Those that were not confirmed for longest are the next to be asked about.
    gone = {f"gone-{n}": _PAST for n in range(25)}
    return Data(client, job, lambda: client.zadd(_KEY, gone), turns=2)


def _missing_ttl(client: Client, size: int) -> Data:
    def put(pipeline: Any, numbers: range) -> None:
        pipeline.mset({f"item-{n}": "value" for n in numbers})

    def forget() -> None:
        """Take the TTLs of a small keyspace away; a large one has enough without."""
        with client.pipeline(transaction=False) as pipeline:
            for number in range(_CHUNK):
                pipeline.persist(f"item-{number}")
            pipeline.execute()

    _fill(client, size, put)
    return Data(
        client,
        MissingTTL(client, _KEY, "item-*", ttl=3600, dry_run=False),
        forget,
    )


def _trimmed_set(client: Client, size: int) -> Data:
    def put(pipeline: Any, numbers: range, at: int = _FUTURE) -> None:
        pipeline.zadd(_KEY, {f"entry-{n}": at + n for n in numbers})

    _fill(client, size, put)
    job = WindowTrimmer(client, _KEY, age=3600, unit="ms")
    return Data(client, job, lambda: put(client, range(size, size + 100), _PAST))


def _trimmed_stream(client: Client, size: int) -> Data:
    def put(pipeline: Any, numbers: range) -> None:
        for number in numbers:
            pipeline.xadd(_KEY, {"n": number})

    _fill(client, size, put)
    job = WindowTrimmer(client, _KEY, length=size)
    return Data(client, job, lambda: _fill(client, 100, put))


def _namespace_budget(client: Client, size: int) -> Data:
    job = NamespaceBudget(client, _KEY, "item-", most_keys=size)
    fresh = count(size, 10)

    def put(pipeline: Any, numbers: range) -> None:
        pipeline.mset({f"item-{n}": "value" for n in numbers})
        job.add(*(f"item-{n}" for n in numbers))

    def overfill() -> None:
        first = next(fresh)
        put(client, range(first, first + 10))

    _fill(client, size, put)
    return Data(client, job, overfill)


def _dead_members(client: Client, size: int) -> Data:
    job = DeadMembers(client, _KEY, silence=3600, on_dead=_nothing)

    def put(pipeline: Any, numbers: range, until: int = _FUTURE) -> None:
        pipeline.zadd(_KEY, {f"member-{n}": until for n in numbers})

    _fill(client, size, put)
    assert job.beat("member-7")
    return Data(client, job, lambda: put(client, range(size, size + 10), _PAST))


def _counter_flush(client: Client, size: int) -> Data:
    flushed: dict[Any, Any] = {}

    def sink(_: str, counts: dict[str, int]) -> None:
        flushed.clear()
        flushed.update(counts)

    def put(pipeline: Any, numbers: range) -> None:
        pipeline.hset(_KEY, mapping={f"counter-{n}": 1 for n in numbers})

    def count_again() -> None:
        if flushed:
            client.hset(_KEY, mapping=flushed)

    _fill(client, size, put)
    job = CounterFlush(client, _KEY, sink)
    assert job.pending() == size
    return Data(client, job, count_again)


def _refresh_ahead(client: Client, size: int) -> Data:
    job = RefreshAhead(client, _KEY, lambda _: "value", ttl=3600)

    def put(pipeline: Any, numbers: range) -> None:
        pipeline.zadd(f"{_KEY}:due", {f"name-{n}": _FUTURE for n in numbers})
        for number in numbers:
            value = f"{_KEY}:value:name-{number}"
            kept = {
                "value": "value",
                "took": 1,
                "expires": _FUTURE,
                "by": "",
                "read": 1,
            }
            pipeline.hset(value, mapping=kept)
            pipeline.pexpireat(value, _FUTURE)

    def make_due() -> None:
        client.zadd(f"{_KEY}:due", {"name-7": _PAST})
        assert job.get("name-7") == b"value"

    _fill(client, size, put)
    return Data(client, job, make_due)


def _pending_reclaim(client: Client, size: int) -> Data:
    client.xgroup_create(_KEY, "group", mkstream=True)

    def put(pipeline: Any, numbers: range) -> None:
        for number in numbers:
            pipeline.xadd(_KEY, {"n": number})
        pipeline.xreadgroup("group", "killed", {_KEY: ">"}, count=len(numbers))

    _fill(client, size, put)
    job = PendingReclaim(client, _KEY, "group", _nothing, idle=0.001)
    assert job.pending() == size
    return Data(client, job, lambda: _fill(client, 10, put))


def _index_repair(client: Client, size: int) -> Data:
    def put(pipeline: Any, numbers: range) -> None:
        """Write an index, and the keys of three members out of four."""
        pipeline.mset({f"item-{n}": "value" for n in numbers if n % 4})
        pipeline.sadd(_KEY, *(f"item-{n}" for n in numbers))

    def forget() -> None:
        client.sadd(_KEY, *(f"item-{n}" for n in range(0, _CHUNK, 4)))

    _fill(client, size, put)
    return Data(client, IndexRepair(client, _KEY), forget)


def _fill(client: Client, size: int, put: Callable[[Any, range], object]) -> None:
    for start in range(0, size, _CHUNK):
        with client.pipeline(transaction=False) as pipeline:
            put(pipeline, range(start, min(start + _CHUNK, size)))
            pipeline.execute()


def _nothing(*_: object) -> None:
    """Be a hook."""


ALL: dict[str, Make] = {
    "VolatileHash, fields": _volatile_hash,
    "KeepUntil, values": _keep_until,
    "QueueTracker, ids and rows": _queue_tracker,
    "MissingTTL, keys": _missing_ttl,
    "WindowTrimmer, sorted-set members": _trimmed_set,
    "WindowTrimmer, stream entries": _trimmed_stream,
    "NamespaceBudget, keys": _namespace_budget,
    "DeadMembers, members": _dead_members,
    "CounterFlush, counters": _counter_flush,
    "RefreshAhead, values": _refresh_ahead,
    "PendingReclaim, pending entries": _pending_reclaim,
    "IndexRepair, members": _index_repair,
}
