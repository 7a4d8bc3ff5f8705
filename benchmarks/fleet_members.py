"""Processes that enlist, and share one job: `python -m benchmarks.fleet_members`.

Its arguments are the URL of a server, a number of processes, and the interval of the
job in seconds. The processes are forked from one that has imported all they need, so a
hundred of them are light. They write a line to the standard output for each slice, and
each time that they find the server away: the time, by the clock that all processes of
a machine share, the process, and what it was. They end with the standard input.
"""

from __future__ import annotations

import os
import sys
import time
from select import select

from workstealing import Fleet, Recruiter
from workstealing.telemetry import BreakerOpened, Event

__all__ = ()

_CALLS_PER_SECOND = 20


def main() -> None:
    """Fork the processes, and wait until nobody wants them any more."""
    url, number, every = sys.argv[1:]
    children = []
    for _ in range(int(number)):
        child = os.fork()
        if not child:
            _live(url, float(every))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def _live(url: str, every: float) -> None:
    recruiter = Recruiter(share=None, observers=(_AwayObserver(),))
    fleet = Fleet(url, "bench")
    recruiter.install(lambda: _write("slice"), "report", every=every, of=fleet)
    # The standard input is ready when it has ended.
    while not select([sys.stdin], [], [], 1 / _CALLS_PER_SECOND)[0]:
        recruiter.enlist()


class _AwayObserver:
    def observe(self, event: Event) -> None:
        if isinstance(event, BreakerOpened):
            _write("away")


def _write(what: str) -> None:
    # One write of a few bytes is never mixed with that of another process.
    line = f"{time.monotonic()} {os.getpid()} {what}\n"
    os.write(sys.stdout.fileno(), line.encode())


if __name__ == "__main__":
    main()
