"""One slice per interval in 1, 10 and 100 real processes, with Redis away in between.

What is asked for is kept within 15 % while the server answers, nothing is done while
it does not, and there is no rush when it comes back.
"""

from __future__ import annotations

import subprocess
import sys
import time
from bisect import bisect_left, insort
from threading import Thread

from benchmarks.measuring import Budget
from workstealing.testing import Server, wait_until

__all__ = ("RealFleet", "measure")

_EVERY = 1.0
_UP_SECONDS = 30.0
_AWAY_SECONDS = 8.0
_START_SECONDS = 60.0


class RealFleet:
    """Processes that share a job; a context that ends them."""

    def __init__(self, url: str, processes: int, every: float) -> None:
        self.every = every
        self.slices: list[float] = []
        """When there was one, by the clock of the machine."""
        self._found_away: dict[str, float] = {}
        self._processes = processes
        self._process = subprocess.Popen(
            (
                *(sys.executable, "-m", "benchmarks.fleet_members"),
                *(url, str(processes), str(every)),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)

    def __enter__(self) -> RealFleet:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_START_SECONDS)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def next_slice(self) -> float:
        """Wait for a slice, and return when it was."""
        known = len(self.slices)
        wait_until(lambda: len(self.slices) > known, _START_SECONDS, "a slice")
        return self.slices[known]

    def some_slices(self, number: int) -> list[float]:
        """Wait for so many slices, and return when they were."""
        first = self.next_slice()
        wait_until(
            lambda: len(self.since(first)) >= number, _START_SECONDS, "more slices"
        )
        return self.since(first)[:number]

    def all_found_it_away(self) -> float:
        """Wait until each process has found the server away; return since when."""
        self._found_away.clear()
        wait_until(
            lambda: len(self._found_away) == self._processes,
            _START_SECONDS,
            "the processes to find the server away",
        )
        return max(self._found_away.values())

    def kept(self, seconds: float) -> float:
        """Return how many slices there are in some seconds, of those asked for.

        It counts the intervals between slices, from one slice to another.
        """
        first = self.next_slice()
        time.sleep(seconds)
        last = self.next_slice()
        intervals = bisect_left(self.slices, last) - bisect_left(self.slices, first)
        return intervals * self.every / (last - first)

    def since(self, moment: float) -> list[float]:
        """Return the slices from a moment on."""
        return self.slices[bisect_left(self.slices, moment) :]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, process, what = line.split()
            if what == "slice":
                # A process may be held up between its clock and its write.
                insort(self.slices, float(at))
            else:
                self._found_away[process] = float(at)


def measure() -> list[Budget]:
    """Measure fleets of three sizes."""
    return [budget for number in (1, 10, 100) for budget in _fleet(number)]


def _fleet(number: int) -> list[Budget]:
    who = "1 process" if number == 1 else f"{number} processes"
    with Server(tcp=True) as server, RealFleet(server.url, number, _EVERY) as fleet:
        before = fleet.kept(_UP_SECONDS)
        server.pause()
        # A slice whose turn was taken before may still be written down.
        away_at = time.monotonic() + _EVERY
        time.sleep(_AWAY_SECONDS)
        while_away = len(fleet.since(away_at))
        server.resume()
        back_at = time.monotonic()
        first = fleet.next_slice()
        after = fleet.kept(_UP_SECONDS)
        crowd = _most_within(fleet.since(back_at), _EVERY / 2)
    return [
        *_within(f"{who}: slices per minute / asked for", before),
        Budget(f"{who}: slices while Redis is away", while_away, 0, ""),
        Budget(f"{who}: until the first slice afterwards", first - back_at, 15, "s"),
        *_within(f"{who}: slices per minute / asked for, then", after),
        Budget(f"{who}: most slices in half an interval", crowd, 1, ""),
    ]


def _within(what: str, kept: float) -> list[Budget]:
    return [Budget(what, kept, 0.85, at_least=True), Budget(what, kept, 1.15)]


def _most_within(moments: list[float], seconds: float) -> int:
    return max(
        (
            bisect_left(moments, moment + seconds) - at
            for at, moment in enumerate(moments)
        ),
        default=0,
    )
