"""What a dismissed call and a recruited slice cost, and what an import costs."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from benchmarks.measuring import Budget, alternate, best
from workstealing import Recruiter

__all__ = ("measure",)

_CALLS = 200_000
_SLICES = 5_000


class Empty:
    """The yardstick."""

    def method(self) -> None:
        """Do nothing."""


def measure() -> list[Budget]:
    """Measure all that concerns the recruiter."""
    return [*_dismissed(), *_slice(), _import()]


def _dismissed() -> list[Budget]:
    empty, one, fifty, timed = Empty(), Recruiter(), Recruiter(), Recruiter()
    one.install(_nothing, "job", rate=1e-9)
    for index in range(50):
        fifty.install(_nothing, f"job-{index}", rate=1e-9)
    timed.install(_nothing, "job", every=1e6)
    before = one.stats().calls

    def yardstick() -> None:
        method = empty
        for _ in range(_CALLS):
            method.method()

    def loop(recruiter: Recruiter) -> None:
        for _ in range(_CALLS):
            recruiter.enlist()

    seconds = alternate(
        25,
        {
            "empty": yardstick,
            "one": lambda: loop(one),
            "fifty": lambda: loop(fifty),
            "timed": lambda: loop(timed),
        },
        time.process_time,
    )
    assert one.stats().calls - before == 26 * _CALLS
    floor = best(seconds["empty"])
    return [
        Budget(
            "enlist() dismissed / empty call, 1 job", best(seconds["one"]) / floor, 2
        ),
        Budget("the same, 50 jobs", best(seconds["fifty"]) / floor, 2),
        Budget("the same, 1 job with every=", best(seconds["timed"]) / floor, 2),
    ]


def _slice() -> list[Budget]:
    """Measure a slice in microseconds, and in empty calls: hosts differ in speed."""
    empty, recruiter = Empty(), Recruiter(share=None)
    recruiter.install(_nothing, "job", rate=1.0)

    def yardstick() -> None:
        for _ in range(_SLICES):
            empty.method()

    def bare() -> None:
        for _ in range(_SLICES):
            _nothing()

    def recruited() -> None:
        for _ in range(_SLICES):
            recruiter.enlist()

    sides = {"empty": yardstick, "bare": bare, "recruited": recruited}
    seconds = alternate(25, sides, time.process_time)
    cost = (best(seconds["recruited"]) - best(seconds["bare"])) / _SLICES
    calls = cost * _SLICES / best(seconds["empty"])
    return [
        Budget("framework cost of one slice over its job", cost * 1e6, 10, "µs"),
        Budget("the same in empty calls (10 µs, at 40 ns a call)", calls, 250, "calls"),
    ]


def _import() -> Budget:
    def start(program: str) -> None:
        subprocess.run([sys.executable, "-I", "-c", program], check=True)

    seconds = alternate(
        12,
        {"bare": lambda: start("pass"), "ours": lambda: start("import workstealing")},
        _cpu_of_children,
    )
    cost = best(seconds["ours"]) - best(seconds["bare"])
    return Budget("import workstealing over a bare interpreter", cost * 1e3, 60, "ms")


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _nothing() -> None:
    return None
