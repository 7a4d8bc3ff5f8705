"""What the tasks do, the same for all libraries.

A task leaves a record in a plain file, not in Redis: so the commands that are counted
are those of the library. A record is written at once, also by many processes, and
outlives a SIGKILL.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ("BODIES", "NAP", "count_records", "done", "records", "uneven_seconds")

NAP = 0.005
_BURN = 0.002
_SHORT, _LONG, _LONG_SHARE = 0.001, 0.2, 0.05

_RECORD = struct.Struct("<qdd")
_trace: int | None = None


def records(trace: Path) -> Iterator[tuple[int, float, float]]:
    """Yield number, start and end of each task that has run."""
    data = trace.read_bytes()
    whole = len(data) // _RECORD.size * _RECORD.size
    yield from _RECORD.iter_unpack(data[:whole])


def count_records(trace: Path) -> int:
    """Return how many tasks have run, without reading what they wrote."""
    return trace.stat().st_size // _RECORD.size


def uneven_seconds(number: int) -> float:
    """Return how long an uneven task sleeps: scattered, but alike in every run."""
    scattered = number * 2654435761 % 2**32 / 2**32
    return _LONG if scattered < _LONG_SHARE else _SHORT


def noop(number: int, text: str) -> int:  # noqa: ARG001 - it goes along as ballast
    """Do nothing."""
    return done(number, time.monotonic())


def nap(number: int, text: str) -> int:  # noqa: ARG001
    """Sleep for 5 ms."""
    began_at = time.monotonic()
    time.sleep(NAP)
    return done(number, began_at)


def uneven(number: int, text: str) -> int:  # noqa: ARG001
    """Sleep for 1 ms, one time of twenty for 200 ms."""
    began_at = time.monotonic()
    time.sleep(uneven_seconds(number))
    return done(number, began_at)


def burn(number: int, text: str) -> int:  # noqa: ARG001
    """Compute for 2 ms of this thread's own time."""
    began_at, until = time.monotonic(), time.thread_time() + _BURN
    while time.thread_time() < until:
        pass
    return done(number, began_at)


def done(number: int, began_at: float) -> int:
    """Write the record of a task that ends now."""
    global _trace
    if _trace is None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        _trace = os.open(os.environ["PEERS_TRACE"], flags, 0o644)
    os.write(_trace, _RECORD.pack(number, began_at, time.monotonic()))
    return number


BODIES: dict[str, Callable[[int, str], int]] = {
    "noop": noop,
    "nap": nap,
    "uneven": uneven,
    "burn": burn,
}
