"""How much memory the processes of the fleet take, and whether it grows on and on.

Most are killed or stopped sooner or later, and others take their places. Who was there
for long enough must not take much more at its end than in the middle. Nothing is known
where there is no `/proc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ("MemoryWatch",)

# In the first half of such a time a process has imported what it needs, and has its
# connections and threads; on a busy machine that takes more than 20 s.
_LEAST_SECONDS = 80.0
_MOST_BYTES = 8 << 20


@dataclass(slots=True)
class _Stay:
    """The time of one process in the fleet."""

    kind: str
    name: str
    looks: list[tuple[float, int]] = field(default_factory=list)
    """When it was looked at, and how many bytes it had."""

    @property
    def seconds(self) -> float:
        """For how long it was watched."""
        return self.looks[-1][0] - self.looks[0][0]

    @property
    def grown(self) -> int:
        """By how many bytes it has grown in the second half of the time."""
        return self.looks[-1][1] - self.looks[len(self.looks) // 2][1]

    def __str__(self) -> str:
        grown, now = self.grown / 1024, self.looks[-1][1] / (1 << 20)
        return f"{grown:+,.0f} KiB in half of {self.seconds:.0f} s, to {now:.0f} MiB"


class MemoryWatch:
    """Looks at processes, and remembers what it saw."""

    def __init__(self) -> None:
        self._stays: dict[int, _Stay] = {}

    def look(self, kind: str, name: str, pids: Iterable[int], now: float) -> None:
        """Look at the processes of a member."""
        for pid in pids:
            used = _resident(pid)
            if used:
                stay = self._stays.setdefault(pid, _Stay(kind, name))
                stay.looks.append((now, used))

    def longest(self) -> dict[str, object]:
        """Tell of the process of each kind that was there for the longest time."""
        found: dict[str, object] = {}
        for stay in self._long_stays():
            found.setdefault(f"memory of {stay.kind}", stay)
        return found

    def grown(self) -> list[str]:
        """Tell of those that have grown too much."""
        return [
            f"{stay.name} by {stay}"
            for stay in self._long_stays()
            if stay.grown > _MOST_BYTES
        ]

    def _long_stays(self) -> list[_Stay]:
        long = [one for one in self._stays.values() if one.seconds >= _LEAST_SECONDS]
        return sorted(long, key=lambda stay: -stay.seconds)


def _resident(pid: int) -> int:
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0
