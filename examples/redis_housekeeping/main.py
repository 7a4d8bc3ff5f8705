"""The cache hits of a little shop do all of its housekeeping: eleven jobs at work.

`python examples/redis_housekeeping/main.py` ends after 20 seconds, or `--seconds`. If a
heap of garbage is not smaller by then it goes on, up to three times as long, and fails.
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress

from chores import Chore, littered
from rich.live import Live
from rich.table import Table

from workstealing import Recruiter, connect
from workstealing.telemetry import Event, SliceEnded, SliceRefused

COLUMNS = ("job", "heap", "now", "slices", "yield", "seconds", "last outcome")


class Shop:
    """Serves pages, leaves garbage behind, and enlists at every cache hit."""

    def __init__(self, chores: list[Chore]) -> None:
        self._chores, self._last = chores, dict[str, str]()
        self._heaps = self._backlog = {chore.name: chore.backlog() for chore in chores}
        # The defaults are 1 % of the time and 50 ms; these let you see something.
        self._recruiter = Recruiter(share=0.1, deadline=0.005, observers=[self])
        for chore in chores:
            self._recruiter.install(chore.job, chore.name, rate=chore.rate)

    def serve_pages(self) -> None:
        """Be open for a quarter of a second, then count the garbage."""
        for chore in self._chores:
            chore.litter(chore.heap // 200)
        for _ in range(25):
            time.sleep(0.01)  # somebody's page
            self._recruiter.enlist()
        self._backlog = {chore.name: chore.backlog() for chore in self._chores}

    def observe(self, event: Event) -> None:
        """Remember the last outcome of each job."""
        if isinstance(event, SliceEnded | SliceRefused):
            self._last[event.job] = event.outcome

    def is_tidier(self) -> bool:
        """Return whether every heap is smaller than it was."""
        return all(self._backlog[name] < heap for name, heap in self._heaps.items())

    def picture(self) -> Table:
        """Draw a table of what each job did so far."""
        stats = self._recruiter.stats()
        table = Table(*COLUMNS, caption=f"{stats.calls:,} cache hits")
        for name, job in stats.jobs.items():
            backlog = (str(self._heaps[name]), str(self._backlog[name]))
            slices = f"{job.recruited} of {job.drawn}"
            worth = f"{job.recruited / max(1, job.drawn):.0%}"
            spent, last = f"{job.seconds:.3f}", self._last.get(name, "")
            table.add_row(name, *backlog, slices, worth, spent, last)
        return table


def main() -> int:
    """Open the shop for a while; return the exit code."""
    parser = argparse.ArgumentParser(description="Eleven jobs keep house in Redis.")
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    with connect(timeout=1.0) as redis, littered(redis) as chores:
        shop, opened_at = Shop(chores), time.monotonic()
        live = Live(shop.picture(), auto_refresh=False)
        with live, suppress(KeyboardInterrupt):
            while (age := time.monotonic() - opened_at) < 3 * seconds:
                if age >= seconds and shop.is_tidier():
                    break
                shop.serve_pages()
                live.update(shop.picture(), refresh=True)
        return 0 if shop.is_tidier() else 1


if __name__ == "__main__":
    raise SystemExit(main())
