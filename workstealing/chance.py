"""Where randomness comes from.

The default asks the operating system. It is safe in threads and forks, it is not
repeated by two processes that seed `random` alike, and it leaves the sequence of a
host that seeded `random` untouched.
"""

from __future__ import annotations

import random
from typing import Protocol

__all__ = ("SYSTEM_CHANCE", "Chance")


class Chance(Protocol):
    """A source of uniform random numbers."""

    def random(self) -> float:
        """Return the next number of [0.0, 1.0)."""
        ...


SYSTEM_CHANCE: Chance = random.SystemRandom()
