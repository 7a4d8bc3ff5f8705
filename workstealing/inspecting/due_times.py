"""Counts delayed tasks by when they are due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workstealing.queue import listing_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, RedisCommand, ask

__all__ = ("DueTimes", "read_due_times")

_STRETCHES = 12
_STEPS_MS = tuple(
    seconds * 1000
    for seconds in (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400)
)


@dataclass(frozen=True, slots=True)
class DueTimes:
    """How many tasks are due in each of a dozen stretches of time, from now on."""

    step_ms: int
    """How long a stretch is; the last one has no end."""
    tasks: tuple[int, ...]


def read_due_times(shards: Sequence[QueueKeys], now_ms: int) -> Flow[DueTimes]:
    """Count the delayed tasks, in stretches that reach to the last if they can."""
    last_ms = now_ms
    for keys in shards:
        latest = yield from ask(listing_calls.ranked(keys.later, most=1, latest=True))
        last_ms = max((last_ms, *(at_ms for _, at_ms in latest)))
    far_ms = last_ms - now_ms
    step_ms = next(
        (step for step in _STEPS_MS if step * _STRETCHES >= far_ms), _STEPS_MS[-1]
    )
    counts = [0] * _STRETCHES
    for n in range(_STRETCHES):
        start = "-inf" if n == 0 else f"({now_ms + step_ms * n}"
        end = "+inf" if n == _STRETCHES - 1 else f"{now_ms + step_ms * (n + 1)}"
        for keys in shards:
            count = RedisCommand(("ZCOUNT", keys.later, start, end), int)
            counts[n] += yield from ask(count)
    return DueTimes(step_ms, tuple(counts))
