"""What ended in each minute, by task name: kept for eight hours.

Workers add to the hash of the minute with their heartbeat. The minute is that of the
worker's clock: it names a hash, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import number, pairs
from workstealing.queue.steps import Call

__all__ = ("MINUTES_KEPT", "read_minutes", "record_minute")

_script = queue_scripts(__package__)

MINUTES_KEPT = 480
"""Minutes that are kept: eight hours."""

_MOST_NAMES = 100


def record_minute(
    keys: QueueKeys, minute: int, counts: Mapping[str, Sequence[int]]
) -> Call[bool]:
    """Add what ended on a worker to the numbers of a minute since 1970."""
    script = _script("record_minute")
    flat: list[str] = []
    for name, numbers in counts.items():
        flat += (name, " ".join(map(str, numbers)))
    return Call(
        script,
        script.keys(keys, minute=keys.minute(minute)),
        script.arguments(kept_ms=MINUTES_KEPT * 60_000, most=_MOST_NAMES, counts=flat),
        bool,
    )


def read_minutes(
    keys: QueueKeys, minutes: Sequence[int]
) -> Call[tuple[dict[str, tuple[int, ...]], ...]]:
    """Read the numbers of some minutes, by task name."""
    script = _script("read_minutes")

    def parse(reply: Any) -> tuple[dict[str, tuple[int, ...]], ...]:
        return tuple(
            {name: _numbers(value) for name, value in pairs(one).items()}
            for one in reply
        )

    own = tuple(map(keys.minute, minutes))
    return Call(script, script.keys(keys, minutes=own), script.arguments(), parse)


def _numbers(value: str) -> tuple[int, ...]:
    """Leave out what is no number: a foreign value must not hide the rest."""
    read = map(number, value.split())
    return tuple(one for one in read if one is not None)
