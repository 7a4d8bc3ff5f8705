"""The queue that is soaked: its tasks and its side work.

Every process of the fleet imports it. Each run of a task notes in the ledger that it
began and ended, and returns a number of its own, so that who sees two results of one
task has seen it completed twice.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from typing import Any

from soak.ledger import Ledger
from workstealing import (
    Limit,
    MemberResult,
    Registry,
    RetryPolicy,
    TaskQueue,
    Unique,
    current_context,
)
from workstealing.jobs import CounterFlush, VolatileHash

__all__ = (
    *("LEASE", "MOST_AT_DESK", "MOST_OF_CUSTOMER", "NAME", "URL"),
    *("counters", "fields", "ledger", "queue"),
)

NAME = "soak"
LEASE = 4.0
MOST_AT_DESK = 2
# The most that a producer ever sets.
MOST_OF_CUSTOMER = 4
URL = os.environ["SOAK_URL"]
_SOON = RetryPolicy(retries=4, initial_delay=0.05, max_delay=0.5)
_chance = SystemRandom()

ledger = Ledger(Path(os.environ["SOAK_LEDGER"]))

# Outcomes and dead letters are kept until the bill is made.
_options: dict[str, Any] = {
    "lease": LEASE,
    "retention": timedelta(hours=3),
    "max_outcomes": 10_000_000,
    "max_dead": 10_000_000,
    "replicas": int(os.environ.get("SOAK_REPLICAS", "0")),
    "shards": int(os.environ.get("SOAK_SHARDS", "1")),
}
queue = TaskQueue(NAME, URL, **_options)
# What is submitted by this one no worker knows: it is parked.
elsewhere = TaskQueue(NAME, URL, registry=Registry(), **_options)


@contextmanager
def _noted(*facts: object) -> Iterator[str]:
    context = current_context()
    assert context is not None
    run = f"{_chance.getrandbits(48):012x}"
    ledger.note("began", context.id, context.name, run, context.worker, *facts)
    yield run
    ledger.note("ended", context.id, context.name, run)


@queue.task(name="quick", brief=True)
def quick(number: int, text: str = "") -> str:
    """Do nothing much."""
    with _noted() as run:
        return run


@queue.task(name="slow")
def slow(seconds: float) -> str:
    """Take some time, without the interpreter."""
    with _noted() as run:
        time.sleep(seconds)
        return run


@queue.task(name="computes")
def computes(seconds: float) -> str:
    """Take some time, with the interpreter."""
    with _noted() as run:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1_000))
        return run


@queue.task(name="waits")
async def waits(seconds: float) -> str:
    """Take some time, in a coroutine."""
    with _noted() as run:
        await asyncio.sleep(seconds)
        return run


@queue.task(name="flaky", retries=_SOON, brief=True)
def flaky(number: int) -> str:
    """Fail two times of three."""
    with _noted() as run:
        if _chance.random() < 0.66:
            raise ValueError(number)
        return run


@queue.task(name="broken", retries=RetryPolicy(retries=1, initial_delay=0.05))
def broken(number: int) -> str:
    """Fail for good."""
    with _noted():
        raise ValueError(number)


@queue.task(name="delicate", idempotent=False)
def delicate(seconds: float) -> str:
    """Be run once at most."""
    with _noted() as run:
        time.sleep(seconds)
        return run


@queue.task(name="limited", limit=Limit(concurrency=2, per="customer", name="customer"))
def limited(customer: int, seconds: float) -> str:
    """Run beside one other of its customer, or as many as a producer has said."""
    with _noted(customer) as run:
        time.sleep(seconds)
        return run


@queue.task(
    name="seated",
    limit=Limit(concurrency=MOST_AT_DESK, per="desk", name="desk"),
    brief=True,
)
def seated(desk: int, seconds: float) -> str:
    """Run beside one other at its desk, whatever happens; also in spare moments."""
    with _noted(desk) as run:
        time.sleep(seconds)
        return run


@queue.task(
    name="rated",
    limit=Limit(rate=20, period=1, name="rate"),
    fair_key="who",
    brief=True,
)
def rated(who: str) -> str:
    """Begin when a rate and the turns of others allow it."""
    with _noted() as run:
        return run


@queue.task(name="alone", unique=Unique(by="key"))
def alone(key: int, seconds: float) -> str:
    """Be in the queue once."""
    with _noted() as run:
        time.sleep(seconds)
        return run


@queue.task(
    name="latest", unique=Unique(by="key", until="started", on_conflict="replace")
)
def latest(key: int, number: int) -> str:
    """Let the last one count."""
    with _noted() as run:
        return run


@queue.task(name="brief", expires=1.0)
def brief(number: int) -> str:
    """Be worthless after a second."""
    with _noted() as run:
        return run


@queue.task(name="pausable", brief=True)
def pausable(number: int) -> str:
    """Have a name that is paused now and then."""
    with _noted() as run:
        return run


@queue.task(name="follows")
def follows(before: str, number: int = 0) -> str:
    """Be the next step of a chain."""
    with _noted() as run:
        return run


@queue.task(name="gathers")
def gathers(members: list[MemberResult[str]]) -> str:
    """Be the step after a group."""
    with _noted() as run:
        return run


@queue.every(1.0, name="second", missed="all")
@queue.task(name="ticks")
def ticks() -> str:
    """Be submitted once a second by whoever has a moment."""
    with _noted() as run:
        return run


@elsewhere.task(name="stranger")
def stranger(number: int) -> str:
    """Be known to no worker."""
    raise AssertionError("no worker has this task")


def _pay_in(batch: str, counts: dict[str, int]) -> None:
    ledger.note("flushed", batch, sum(counts.values()))


counters = CounterFlush(URL, "soak-counters", _pay_in, lease=2.0)
fields = VolatileHash(URL, "soak-fields", on_expire=lambda *_: None)
