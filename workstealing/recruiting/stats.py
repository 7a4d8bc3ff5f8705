"""What a recruiter has counted: counts while it works, frozen snapshots to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workstealing._stop_requests import is_stop_request
from workstealing.telemetry.events import REFUSALS, Outcome

if TYPE_CHECKING:
    from workstealing.recruiting.slice import Slice

__all__ = ("JobCounts", "JobStats", "RecruiterStats")


@dataclass(slots=True)
class JobCounts:
    """What is counted of one job."""

    outcomes: dict[Outcome, int] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    overran: int = 0
    unfinished: int = 0
    productive_at: float | None = None
    last_error: str | None = None

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def add_slice(self, ended: Slice) -> None:
        """Count a slice that has ended."""
        self.add(ended.outcome)
        self.rounds += ended.rounds
        self.seconds += ended.seconds
        self.longest = max(self.longest, ended.seconds)
        self.overran += ended.overran
        self.unfinished += ended.unfinished
        if ended.worked:
            self.productive_at = ended.ended_at
        if ended.outcome is Outcome.ERROR:
            self.last_error = _described(ended.error)

    def snapshot(
        self, rate: float | None, every: float | None, now: float, *, of_fleet: bool
    ) -> JobStats:
        """Return the counts as of now, with the age of the last productive slice."""
        productive_at = self.productive_at
        return JobStats(
            rate=rate,
            every=every,
            outcomes={outcome: self.outcomes.get(outcome, 0) for outcome in Outcome},
            rounds=self.rounds,
            seconds=self.seconds,
            longest=self.longest,
            overran=self.overran,
            last_productive=None if productive_at is None else now - productive_at,
            last_error=self.last_error,
            unfinished=self.unfinished,
            of_fleet=of_fleet,
        )


@dataclass(frozen=True, slots=True)
class JobStats:
    """One job in this process, since it was installed or the process forked."""

    rate: float | None
    every: float | None
    outcomes: Mapping[Outcome, int]
    rounds: int
    seconds: float
    longest: float
    """The longest slice, in seconds."""
    overran: int
    """Slices that took longer than their deadline."""
    last_productive: float | None
    """Seconds since a slice last worked, to alert on; None if none ever did."""
    last_error: str | None
    unfinished: int = 0
    """Slices whose last word was `Duty.MORE`: they ended with work left."""
    of_fleet: bool = False
    """Whether *every* is about all processes together."""

    @property
    def recruited(self) -> int:
        """How many slices worked."""
        return self.outcomes[Outcome.RECRUITED]

    @property
    def drawn(self) -> int:
        """How often the job was drawn, however that ended."""
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True)
class RecruiterStats:
    """One recruiter in this process; `str()` is a table of its jobs."""

    calls: int
    """How many moments were offered: calls of `enlist()` and `would_dismiss()`."""
    jobs: Mapping[str, JobStats]
    open_targets: Mapping[str, float]
    """Targets whose breaker is open, and for how many seconds more."""
    debt: float
    """Seconds of side work still to be paid off by waiting; 0 when none."""
    setup_failures: int
    faults: int
    """Errors of the recruiter itself, or of a logging handler; no host saw them."""

    def __str__(self) -> str:
        return "\n".join((self._summary(), *_aligned(self._rows())))

    def _summary(self) -> str:
        parts = [f"{self.calls:,} call{'' if self.calls == 1 else 's'}"]
        parts += [f"{self.debt:.3g} s in debt"] if self.debt else []
        parts += [
            f"{target} is left alone for {seconds:.3g} s"
            for target, seconds in self.open_targets.items()
        ]
        failures, faults = self.setup_failures, self.faults
        parts += [f"{failures:,} setup failures"] if failures else []
        parts += [f"{faults:,} faults"] if faults else []
        return ", ".join(parts)

    def _rows(self) -> list[tuple[str, ...]]:
        rows = [
            (name, *_cells(job), job.last_error or "")
            for name, job in self.jobs.items()
        ]
        return [_TITLES, *rows] if rows else []


def _described(error: BaseException | None) -> str:
    try:
        return repr(error)
    except BaseException as nested:
        # It is the job's own class.
        if is_stop_request(nested):
            raise
        return f"{type(error).__name__} (its repr() raises)"


_TITLES = (
    *("job", "rate", "drawn", "recruited", "empty", "errors", "refused"),
    *("mean", "longest", "worked", "last error"),
)


def _cells(job: JobStats) -> tuple[str, ...]:
    refused = sum(job.outcomes[outcome] for outcome in REFUSALS)
    ran = job.drawn - refused
    ago = job.last_productive
    return (
        f"{job.rate:g}" if job.rate is not None else f"every {job.every:g} s",
        f"{job.drawn:,}",
        f"{job.recruited:,}",
        f"{job.outcomes[Outcome.EMPTY]:,}",
        f"{job.outcomes[Outcome.ERROR]:,}",
        f"{refused:,}",
        f"{job.seconds / ran * 1000:.3g} ms" if ran else "-",
        f"{job.longest * 1000:.3g} ms" if ran else "-",
        "never" if ago is None else f"{ago:.3g} s ago",
    )


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Align names to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *numbers, last in rows:
        cells = [first.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]
        lines.append("  ".join((*cells, last)).rstrip())
    return lines
