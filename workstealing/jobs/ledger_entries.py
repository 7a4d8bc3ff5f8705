"""How the ledger of side work is laid out in Redis.

A hash covers a stretch of five minutes and is kept for an hour. Each process adds what
it has counted since the last time. The hash has a field for each job on each host, one
for each host, one for each target whose breaker a host saw open, and one for each job
that says since when it has been counted. So the ledger grows with jobs and hosts, not
with processes, and what is no longer published disappears by itself. When a hash is
three quarters full, hosts that are not in it yet are added up as `*`: so all sums are
right as long as there is any room. A process chooses the hash by its own clock, and
nothing else depends on that clock.

A process publishes about every ten seconds while it offers moments. A longer pause
counts as one stretch at most. Otherwise a job with an interval would seem to have
starved all night, when in fact nobody offered a moment.

A later release may add fields of a new kind, which older ones ignore. It must not add
numbers to a field, because numbers are added up by their positions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workstealing._forking import reset_in_children
from workstealing.jobs.job_keys import lossless_text
from workstealing.jobs.redis_job import call_script
from workstealing.queue.replies import number
from workstealing.queue.steps import Call
from workstealing.recruiting.stats import JobStats, RecruiterStats
from workstealing.telemetry.events import Outcome

__all__ = (
    "HOST_NUMBERS",
    "JOB_NUMBERS",
    "KEPT_SECONDS",
    "OPEN_NUMBERS",
    "OUTCOMES",
    "SPAN_NUMBERS",
    "STRETCH_SECONDS",
    "LedgerEntry",
    "StatsDelta",
    "add_entries",
    "read_entries",
)

STRETCH_SECONDS = 300
"""What one hash is about."""
KEPT_SECONDS = 3600
"""How far back the ledger goes."""
OUTCOMES = tuple(Outcome)
JOB_NUMBERS = len(OUTCOMES) + 8
"""Of a job: its outcomes, rounds, microseconds, overruns, slices with work left, calls
and ms of the processes that have it; the longest slice, last worked."""
HOST_NUMBERS = 6
"""Of a host: calls, ms of its processes, faults, failed setups, debt, last seen."""
OPEN_NUMBERS = 3
"""Of an open target: processes that saw it, ms that it stays open, last seen."""
SPAN_NUMBERS = 2
"""Of a job in a stretch: ms before its end when counting began, last seen."""

_MOST_FIELDS = 1000
_MOST_OF_HOSTS = 750
_LONGEST_GAP_MS = STRETCH_SECONDS * 1000
_MOST_JOBS = 100
_MOST_TARGETS = 20
_LONGEST_ERROR = 200


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A field of the ledger."""

    kind: str
    """`job`, `host`, `open` or `span`"""
    name: str
    host: str
    """Empty: of all hosts; `*`: of those that the ledger has no more room for."""
    numbers: tuple[int, ...]
    facts: dict[str, Any]
    stretch: int = 0
    """The number of the stretch that it was read from."""


class StatsDelta:
    """Turns the stats of a recruiter into what was counted since the last time."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[str, tuple[int, ...]] = {}
        self._added_at = now()
        # A child that is forked much later has counted nothing in the meantime.
        reset_in_children(self, StatsDelta._reset_after_fork)

    def entries(self, stats: RecruiterStats, host: str) -> list[LedgerEntry]:
        """Return what to add to the ledger; what is not added is lost."""
        now = self._now()
        passed_ms = max(0, round((now - self._added_at) * 1000))
        passed_ms = min(passed_ms, _LONGEST_GAP_MS)
        self._added_at = now
        is_first = not self._seen
        counted = (stats.calls, stats.faults, stats.setup_failures)
        calls, faults, failures = self._since("", counted)
        debt_ms = round(stats.debt * 1000)
        numbers = (calls, passed_ms, faults, failures, debt_ms, 0)
        found = [LedgerEntry("host", "", host, numbers, {})]
        for name, job in list(stats.jobs.items())[:_MOST_JOBS]:
            # A job that was installed since the last time was not there all along.
            had = (calls, passed_ms) if is_first or name in self._seen else (0, 0)
            since = (_ms_to_end() + had[1], 0)
            found.append(LedgerEntry("span", name, "", since, {}))
            found.append(self._of_job(name, job, host, had))
        for target, seconds in list(stats.open_targets.items())[:_MOST_TARGETS]:
            name, left_ms = target.replace("\t", " "), round(seconds * 1000)
            found.append(LedgerEntry("open", name, host, (1, left_ms, 0), {}))
        return found

    def _reset_after_fork(self) -> None:
        self._seen = {}
        self._added_at = self._now()

    def _of_job(
        self, name: str, job: JobStats, host: str, had: tuple[int, int]
    ) -> LedgerEntry:
        counted = (
            *(job.outcomes[outcome] for outcome in OUTCOMES),
            job.rounds,
            round(job.seconds * 1e6),
            job.overran,
            job.unfinished,
        )
        ago = job.last_productive
        facts: dict[str, Any] = {"rate": job.rate, "every": job.every}
        if job.of_fleet:
            facts["of_fleet"] = True
        if job.last_error:
            facts["error"] = job.last_error[:_LONGEST_ERROR]
        numbers = (
            *self._since(name, counted),
            *had,
            round(job.longest * 1e6),
            -1 if ago is None else round(ago * 1000),
        )
        return LedgerEntry("job", name, host, numbers, facts)

    def _since(self, name: str, counted: tuple[int, ...]) -> tuple[int, ...]:
        before = self._seen.get(name)
        self._seen[name] = counted
        # A job that was installed again counts from zero.
        if before is None or any(
            one < other for one, other in zip(counted, before, strict=True)
        ):
            return counted
        return tuple(one - other for one, other in zip(counted, before, strict=True))


def add_entries(entries: Iterable[LedgerEntry]) -> Call[int]:
    """Add to the stretch of now."""
    flat: list[str] = []
    for one in entries:
        numbers = " ".join(map(str, one.numbers))
        flat += ("\t".join((one.kind, one.host, one.name)), numbers)
        flat.append(json.dumps(one.facts))
    key = _key(_stretch_now())
    call: Call[int] = call_script(
        "ledger_add",
        {"stretch": key},
        int,
        kept_ms=(KEPT_SECONDS + STRETCH_SECONDS) * 1000,
        most=_MOST_FIELDS,
        most_of_hosts=_MOST_OF_HOSTS,
        entries=flat,
    )
    return call


def read_entries() -> Call[tuple[int, bool, list[LedgerEntry]]]:
    """Read the last hour: the server's time, whether all is there, the entries.

    The latest stretch comes first.
    """
    last = _stretch_now()
    # The clock of another host may be a little ahead.
    wanted = range(last + 1, last - KEPT_SECONDS // STRETCH_SECONDS, -1)

    def parse(reply: Any) -> tuple[int, bool, list[LedgerEntry]]:
        found: list[LedgerEntry] = []
        is_all = True
        for stretch, flat in zip(wanted, reply[1:], strict=True):
            pairs = dict(zip(flat[::2], flat[1::2], strict=True))
            is_all = is_all and len(pairs) < _MOST_FIELDS
            found += _entries(pairs, stretch)
        return int(reply[0]), is_all, found

    call: Call[tuple[int, bool, list[LedgerEntry]]] = call_script(
        "ledger_read", {"stretches": tuple(map(_key, wanted))}, parse
    )
    return call


def _entries(pairs: Mapping[Any, Any], stretch: int) -> Iterable[LedgerEntry]:
    for field, value in pairs.items():
        kind, _, rest = lossless_text(field).partition("\t")
        host, _, name = rest.partition("\t")
        written, _, facts = lossless_text(value).partition("\n")
        numbers = tuple(number(one) or 0 for one in written.split())
        yield LedgerEntry(kind, name, host, numbers, _facts(facts), stretch)


def _facts(written: str) -> dict[str, Any]:
    try:
        facts = json.loads(written)
    except (ValueError, RecursionError):
        # Any program that can write to Redis may have put it there.
        return {}
    return facts if isinstance(facts, dict) else {}


def _stretch_now() -> int:
    return int(time.time() // STRETCH_SECONDS)


def _ms_to_end() -> int:
    return round((STRETCH_SECONDS - time.time() % STRETCH_SECONDS) * 1000)


def _key(stretch: int) -> str:
    return f"ws:{{side-work}}:{stretch}"
