"""What ended in each minute of the last hour, and in each ten of the last eight hours.

Workers add to both with their heartbeat, by task name. A hash holds ten stretches, so a
chart of eight hours is six hashes. The minute is that of the worker's clock: it names a
hash, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import number, pairs
from workstealing.queue.steps import Call

__all__ = (
    "BOUNDS_MS",
    "MINUTES_KEPT",
    "NUMBERS",
    "RUN_NUMBERS",
    "TENS_KEPT",
    "WAIT_BOUNDS_MS",
    "read_stretches",
)

_script = queue_scripts(__package__)

MINUTES_KEPT = 60
"""Single minutes that are kept: an hour."""
TENS_KEPT = 48
"""Stretches of ten minutes that are kept: eight hours."""
BOUNDS_MS = tuple(2**n for n in range(17))
"""Where one bucket of the histogram ends and the next one begins; eighteen of them."""
RUN_NUMBERS = 3 + len(BOUNDS_MS) + 1
"""How many numbers say how tasks ran: done, failed, milliseconds, the histogram."""
WAIT_BOUNDS_MS = tuple(2**n for n in range(23))
"""The same bounds for waits, which may take an hour; 24 buckets."""
NUMBERS = RUN_NUMBERS + 1 + len(WAIT_BOUNDS_MS) + 1
"""How many there are in all: behind those, milliseconds and the histogram of waits."""


def read_stretches(
    keys: QueueKeys, length: Literal[1, 10], wanted: Sequence[int]
) -> Call[tuple[dict[str, tuple[int, ...]], ...]]:
    """Read the numbers of some stretches of one or ten minutes, by task name."""
    script = _script("read_stretches")
    key_of = keys.ten_minutes if length == 1 else keys.hundred_minutes
    hashes = sorted({stretch // 10 for stretch in wanted})

    def parse(reply: Any) -> tuple[dict[str, tuple[int, ...]], ...]:
        found: dict[int, dict[str, tuple[int, ...]]] = {}
        for first, one in zip(hashes, reply, strict=True):
            for field, value in pairs(one).items():
                nth, _, name = field.partition(" ")
                stretch = 10 * first + (number(nth) or 0)
                found.setdefault(stretch, {})[name] = _numbers(value)
        return tuple(found.get(stretch, {}) for stretch in wanted)

    own = tuple(map(key_of, hashes))
    return Call(script, script.keys(keys, tenfold=own), script.arguments(), parse)


def _numbers(value: str) -> tuple[int, ...]:
    """Leave out what is no number: a foreign value must not hide the rest."""
    read = map(number, value.split())
    return tuple(one for one in read if one is not None)
