"""Eleven kinds of garbage, and the ready-made job that clears each of them away.

Each function below is one job as you would install it, with a way to make garbage for
it and a way to count what lies about. All keys begin with the key that it is given.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from redis import Redis

from workstealing import Job
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

__all__ = ("Chore", "littered")

_KEPT = 100


@dataclass(frozen=True, slots=True)
class Chore:
    """A job, and the garbage that it removes."""

    job: Job
    drop: Callable[[int], object]
    """Drops a piece of garbage; its number makes it different from the others."""
    backlog: Callable[[], int]
    """Counts the pieces that are there."""
    heap: int = 1000
    """How many there are before the job is installed."""
    rate: float = 0.03
    """Jobs that do little in a slice have a higher rate."""
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def name(self) -> str:
        """The name of the job."""
        return type(self.job).__name__

    def litter(self, pieces: int = 1) -> None:
        """Drop some pieces."""
        for number in islice(self.numbers, pieces):
            self.drop(number)


@contextmanager
def littered(redis: Redis) -> Iterator[list[Chore]]:
    """Yield a chore for each ready-made job, with a heap of garbage; then clean up."""
    prefix = f"{{housekeeping-{secrets.token_hex(4)}}}"
    makers = (
        *(_sessions, _leases, _orders, _cache, _log, _thumbnails),
        *(_workers, _views, _pages, _mails, _baskets),
    )
    try:
        chores = [make(redis, prefix + make.__name__) for make in makers]
        for chore in chores:
            chore.litter(chore.heap)
        yield chores
    finally:
        for key in redis.scan_iter(f"{prefix}*", count=1000):
            redis.unlink(key)


def _sessions(redis: Redis, key: str) -> Chore:
    """Sessions end. With a hook the job ends them; without one, Valkey 9 would."""
    sessions = VolatileHash(redis, key, on_expire=_act)
    return Chore(
        sessions,
        lambda n: sessions.set(f"user-{n}", "signed in", ttl=0.001),
        lambda: _number(redis.hlen(key)),
    )


def _leases(redis: Redis, key: str) -> Chore:
    """Leases run out, and their keys have no TTL."""
    leases = KeepUntil(redis, key)
    return Chore(
        leases,
        lambda n: leases.set(f"printer-{n}", "ann", until=0.001),
        lambda: _number(redis.zcard(f"{key}:deadlines")),
    )


def _orders(redis: Redis, key: str) -> Chore:
    """Orders are opened and closed in a table, but the set in Redis is not updated."""
    table: set[str] = set()

    def next_rows(after: str | None, count: int) -> list[str]:
        return sorted(row for row in table if row > (after or ""))[:count]

    tracker = QueueTracker(
        redis, key, next_rows=next_rows, still_there=lambda ids: table.intersection(ids)
    )

    def drop(number: int) -> None:
        order = f"{number:08}"
        if number % 2:
            table.add(order)  # opened
        else:
            tracker.add(order)  # closed since

    return Chore(tracker, drop, lambda: len(tracker.ids() ^ table), heap=400)


def _cache(redis: Redis, key: str) -> Chore:
    """Somebody forgets the TTL of cached values."""
    cure = MissingTTL(redis, key, f"{key}:item-*", ttl=60, dry_run=False)
    written: list[str] = []

    def drop(number: int) -> None:
        written.append(f"{key}:item-{number}")
        redis.set(written[-1], "…")

    def without_ttl() -> int:
        with redis.pipeline(transaction=False) as pipeline:
            for item in written:
                pipeline.ttl(item)
            return pipeline.execute().count(-1)

    return Chore(cure, drop, without_ttl)


def _log(redis: Redis, key: str) -> Chore:
    """A log has more lines than anybody will read."""
    return Chore(
        WindowTrimmer(redis, key, length=_KEPT),
        lambda n: redis.zadd(key, {f"line {n}": n}),
        lambda: max(0, _number(redis.zcard(key)) - _KEPT),
    )


def _thumbnails(redis: Redis, key: str) -> Chore:
    """Thumbnails take more than their share."""
    budget = NamespaceBudget(redis, key, f"{key}:image-", most_keys=_KEPT)

    def drop(number: int) -> None:
        redis.set(f"{key}:image-{number}", "…")
        budget.add(f"{key}:image-{number}")

    return Chore(
        budget, drop, lambda: max(0, budget.usage().keys - _KEPT), heap=500, rate=0.06
    )


def _workers(redis: Redis, key: str) -> Chore:
    """Workers are killed and cannot sign off."""
    workers = DeadMembers(redis, key, silence=0.001, on_dead=_act)
    return Chore(
        workers,
        lambda n: workers.join(f"host-{n}"),
        lambda: _number(redis.zcard(key)),
        heap=500,
    )


def _views(redis: Redis, key: str) -> Chore:
    """Page views are counted, and belong in a database."""
    stored: dict[str, dict[str, int]] = {}  # by batch id, so repeats count once
    views = CounterFlush(redis, key, stored.setdefault)
    return Chore(views, lambda n: views.increment(f"/page/{n}"), views.pending)


def _pages(redis: Redis, key: str) -> Chore:
    """Rendered pages that people read are about to expire."""
    due: set[str] = set()

    def render(name: str) -> str:
        due.discard(name)
        return f"<h1>{name}</h1>"

    def drop(number: int) -> None:
        name = f"page-{number}"
        before.get(name)  # computed
        before.get(name)  # read
        due.add(name)

    # An older configuration: pages were due for rendering again almost at once.
    before = RefreshAhead(redis, key, render, ttl=60, ahead=59.999)
    pages = RefreshAhead(redis, key, render, ttl=60)
    return Chore(pages, drop, lambda: len(due), heap=200, rate=0.06)


def _mails(redis: Redis, key: str) -> Chore:
    """A consumer takes mails from a stream, and dies before it has sent them."""
    redis.xgroup_create(key, "senders", mkstream=True)
    mails = PendingReclaim(redis, key, "senders", _act, idle=0.05)

    def drop(number: int) -> None:
        redis.xadd(key, {"to": f"user-{number}"})
        redis.xreadgroup("senders", "killed", {key: ">"})

    return Chore(mails, drop, mails.pending, heap=300)


def _baskets(redis: Redis, key: str) -> Chore:
    """Shopping baskets expire, but stay in the index."""
    redis.mset({f"{key}:living-{n}": "…" for n in range(_KEPT)})
    redis.sadd(key, *(f"living-{n}" for n in range(_KEPT)))
    return Chore(
        IndexRepair(redis, key, key_of=lambda basket: f"{key}:{basket}"),
        lambda n: redis.sadd(key, f"expired-{n}"),
        lambda: _number(redis.scard(key)) - _KEPT,
        heap=500,
    )


def _act(*_: object) -> None:
    """A stand-in for your hooks."""


def _number(reply: Any) -> int:
    return int(reply)
