"""What ended in each minute, by task name: kept for eight hours.

Workers add to the hash of the minute with their heartbeat. The minute is that of the
worker's clock: it names a hash, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import number, pairs
from workstealing.queue.steps import Call

__all__ = ("BOUNDS_MS", "MINUTES_KEPT", "NUMBERS", "read_minutes")

_script = queue_scripts(__package__)

MINUTES_KEPT = 480
"""Minutes that are kept: eight hours."""
BOUNDS_MS = tuple(2**n for n in range(17))
"""Where one bucket of the histogram ends and the next one begins; eighteen of them."""
NUMBERS = 3 + len(BOUNDS_MS) + 1
"""How many numbers there are of a task: done, failed, milliseconds, the histogram."""


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
