"""Where randomness comes from.

The default asks the operating system. It is safe in threads and forks, it is not
repeated by two processes that seed `random` alike, and it leaves the sequence of a
host that seeded `random` untouched.
"""

from __future__ import annotations

import os
from typing import Protocol

__all__ = ("SYSTEM_CHANCE", "Chance", "SystemChance")

_STEP = 2.0**-53


class Chance(Protocol):
    """A source of uniform random numbers."""

    def random(self) -> float:
        """Return the next number of [0.0, 1.0)."""
        ...


class SystemChance:
    """The operating system's; as `random.SystemRandom`, without its import."""

    def random(self) -> float:
        """Return a multiple of 2⁻⁵³, each as likely as the others."""
        return (int.from_bytes(os.urandom(7), "big") >> 3) * _STEP

    def __repr__(self) -> str:
        return "SYSTEM_CHANCE"


SYSTEM_CHANCE: Chance = SystemChance()
