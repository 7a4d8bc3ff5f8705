"""The side work of the whole fleet as values: its jobs, its hosts, open targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workstealing.jobs.side_work_verdicts import JobVerdict, judge, proposal_of
from workstealing.recruiting.observed_plan import Proposal, SlicesSeen
from workstealing.telemetry.events import Outcome

__all__ = ("FleetHost", "FleetJob", "FleetSideWork", "OpenTarget")


@dataclass(frozen=True, slots=True)
class FleetJob:
    """One job over the last hour: of the whole fleet, or of one host."""

    name: str
    host: str
    """Empty: of all hosts."""
    hosts: int
    """How many hosts have it; those beyond the room of the ledger count as one."""
    rate: float | None
    """The rate in force, as a process published it last; None if it has *every*."""
    every: float | None
    of_fleet: bool
    """Whether *every* is about all processes together."""
    outcomes: Mapping[Outcome, int]
    unfinished: int
    """Slices that ended with work left, by `Duty.MORE`."""
    rounds: int
    seconds: float
    longest: float
    """The longest slice, in seconds."""
    overran: int
    process_seconds: float
    """How long the processes that have it ran, added up."""
    wall_seconds: float
    """How long it has been published."""
    calls: int
    """Moments that these processes offered."""
    last_productive_ms: int | None
    """When a slice last worked, by the server's clock; None if none did."""
    last_error: str

    @property
    def drawn(self) -> int:
        """How often it was drawn, however that ended."""
        return sum(self.outcomes.values())

    @property
    def slices(self) -> int:
        """How many slices were begun; not those whose turn another process had."""
        seen = self.seen
        return seen.judged + seen.failed

    @property
    def worked(self) -> int:
        """How many slices worked."""
        return self.outcomes[Outcome.RECRUITED]

    @property
    def refused(self) -> int:
        """How often it was drawn and not begun, to protect a host."""
        return self.seen.refused

    @property
    def yielded(self) -> float:
        """The share of its slices that found work, of those that did not fail."""
        judged = self.seen.judged
        return self.worked / judged if judged else 0.0

    @property
    def share(self) -> float:
        """The part of the processes' time that it took."""
        return self.seconds / self.process_seconds if self.process_seconds else 0.0

    @property
    def calls_per_second(self) -> float:
        """Moments that these processes offer per second, all together."""
        return self.calls / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def asked(self) -> float | None:
        """How many slices its interval asks for in this time; None if it has a rate."""
        if not self.every:
            return None
        return (
            self.wall_seconds if self.of_fleet else self.process_seconds
        ) / self.every

    @property
    def seen(self) -> SlicesSeen:
        """Its slices by how they ended."""
        return SlicesSeen.of(self.outcomes, self.unfinished)

    @property
    def verdict(self) -> JobVerdict:
        """How it fares, with words for it."""
        return judge(self)

    def proposal(self, stale: float | None = None) -> Proposal:
        """Return which pace would be planned, going by what was seen.

        Args:
            stale: seconds without a slice in the whole fleet that are too many, if any.
        """
        return proposal_of(self, stale)


@dataclass(frozen=True, slots=True)
class FleetHost:
    """One host of the fleet, over the last hour."""

    name: str
    """`*`: all hosts for which the ledger had no more room, added up."""
    calls: int
    """Moments that its processes offered."""
    process_seconds: float
    """How long they ran, added up; a pause counts as five minutes at most."""
    seen_ms: int
    """When one of them published last."""
    seconds: float
    """How much of that time side work took."""
    faults: int
    setup_failures: int

    @property
    def share(self) -> float:
        """The part of its processes' time that side work took."""
        return self.seconds / self.process_seconds if self.process_seconds else 0.0


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target that failed, and that a host leaves alone."""

    target: str
    host: str
    seen_ms: int
    """When a process last said so."""


@dataclass(frozen=True, slots=True)
class FleetSideWork:
    """What all recruiters that publish did in the last hour."""

    now_ms: int
    jobs: tuple[FleetJob, ...]
    """Of all hosts; those that took most time first."""
    by_host: tuple[FleetJob, ...]
    """The same by job and host."""
    hosts: tuple[FleetHost, ...]
    open_targets: tuple[OpenTarget, ...]
    is_all: bool
    """False if there are more jobs than the ledger has room for: sums are too low."""

    @property
    def share(self) -> float:
        """The part of all processes' time that side work took."""
        ran = sum(host.process_seconds for host in self.hosts)
        return sum(host.seconds for host in self.hosts) / ran if ran else 0.0
