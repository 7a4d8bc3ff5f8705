"""What inspection asks of Redis: where a task is, and how many are in each place.

Nothing here changes a queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workstealing.queue import task_output_calls
from workstealing.queue.composition_calls import GroupProgress
from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.replies import (
    begun,
    events,
    failures,
    number,
    pairs,
    raw,
    shown,
    tallies,
)
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.tasks.context import Progress
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import State

__all__ = (
    "Counts",
    "Located",
    "Trace",
    "begun_at",
    "counts",
    "locate",
    "trace",
    "waits_for",
)

_script = queue_scripts(__package__)
_NO_PAUSES = Pauses()


@dataclass(frozen=True, slots=True)
class Trace:
    """All that is known of a task, except from its worker's own keys."""

    now_ms: int
    envelope: bytes
    worker: str
    token: str
    outcome: bytes
    due_ms: int | None
    dead_at_ms: int | None
    needs: str
    """The ability that it is parked for."""
    attempts: int
    deaths: int
    steals: int
    is_cancelling: bool
    unique: str
    """How long it is unique: `s` until started, `d` until done, `w` for a window."""
    is_aside: bool
    """It was put aside, because its name is or was paused."""
    pauses: Pauses
    """What of the queue is paused."""
    line: str
    """The line that it waits in when it waits; empty if it has none."""
    is_step: bool = False
    """It waits for others to end: for its group, or for the step before it."""
    group: GroupProgress | None = None
    """The group that it waits for, or has waited for."""
    failures: tuple[bytes, ...] = ()
    """The outcomes of its last failed attempts, the latest first."""
    events: tuple[str, ...] = ()
    """Its events, as `lib/history.lua` writes them."""

    @property
    def name(self) -> str:
        """The name of the task; empty if nobody can read its envelope."""
        read = Envelope.read_or_none(self.envelope)
        return "" if read is None else read.name

    @property
    def paused_since_ms(self) -> int | None:
        """Since when such tasks are not begun; None if they are."""
        return self.pauses.since_ms(self.name) if self.pauses else None


@dataclass(frozen=True, slots=True)
class Located:
    """A task as it was found."""

    trace: Trace
    begun_at_ms: int | None
    """When its worker took it, if it has."""
    place: State | None
    """Where it is; None if it has ended, then its outcome says how."""
    progress: Progress | None = None
    """How far it says it is, while it runs."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks are in each place, and what else describes a queue."""

    now_ms: int
    inbox: tuple[int, int, int]
    """By priority, including cancelled tasks that were not passed over yet."""
    tasks: int
    """All that are not over, and dead letters."""
    assigned: int
    """In deques or running."""
    outcomes: int
    delayed: int
    dead: int
    parked: int
    input_ended: bool
    stats: dict[str, int]
    upkeep: dict[str, int]
    leases: dict[str, int]
    """Up to a thousand workers and the end of their leases, ms."""
    loads: dict[str, int]
    abilities: dict[str, int]
    paused: int = 0
    """Put aside, because their names are paused."""
    pauses: Pauses = _NO_PAUSES
    """What of the queue is paused."""
    in_lines: int = 0
    """Waiting for their turn, or held back by a limit."""
    held_back: int = 0
    """Those of them that a limit holds back, in two thousand lines at most."""
    steps: int = 0
    """Steps of chains and groups that wait for others to end."""

    @property
    def unfinished(self) -> int:
        """Tasks that are not over; without steps, which wait for others of them."""
        return self.tasks - self.dead - self.parked - self.steps

    @property
    def runnable(self) -> int:
        """Unfinished tasks that run or could be begun now."""
        if self.pauses.queue_since_ms is not None:
            return 0
        return self.unfinished - self.delayed - self.paused - self.held_back


def locate(keys: QueueKeys, task_id: str) -> Flow[Located]:
    """Look a task up."""
    seen = yield from ask(trace(keys, task_id))
    begun_at_ms, progress = None, None
    if seen.worker and not seen.outcome:
        begun_at_ms = yield from ask(begun_at(keys, seen.worker, task_id))
    if begun_at_ms is not None:
        call = task_output_calls.read_note(keys, task_id, seen.envelope, "progress")
        shown = yield from ask(call)
        progress = Progress.read_or_none(shown)
    return Located(seen, begun_at_ms, _place(seen, begun_at_ms), progress)


def trace(keys: QueueKeys, task_id: str) -> Call[Trace]:
    """Read all that is known of a task, except from its worker's own keys."""
    script = _script("trace")
    return Call(
        script,
        script.keys(keys),
        script.arguments(id=task_id),
        _trace,
        is_raw=True,
    )


def begun_at(keys: QueueKeys, worker: str, task_id: str) -> RedisCommand[int | None]:
    """Read when a worker took a task; None if it waits in the deque."""
    return RedisCommand(
        ("HGET", keys.running(worker), task_id),
        lambda reply: None if reply is None else begun(reply),
    )


def counts(keys: QueueKeys) -> Call[Counts]:
    """Count the tasks in each place."""
    script = _script("counts")
    return Call(script, script.keys(keys), script.arguments(), _counts)


def waits_for(seen: Trace) -> str:
    """Say what a step waits for: `waits for …`."""
    group = seen.group
    if group is not None:
        left = f"waits for {group.left:,} of {group.total:,} members"
        failed = f"; {group.failed:,} failed" if group.failed else ""
        return f"{left} of its group{failed}"
    read = Envelope.read_or_none(seen.envelope)
    after = None if read is None else read.after
    return f"waits for task {after.task}" if after else "waits for the step before it"


def _place(seen: Trace, begun_at_ms: int | None) -> State | None:
    if seen.outcome:
        return None
    if not seen.envelope:
        return State.UNKNOWN
    known = (
        (seen.dead_at_ms is not None, State.DEAD),
        (bool(seen.needs), State.PARKED),
        (seen.due_ms is not None, State.DELAYED),
        (begun_at_ms is not None, State.RUNNING),
        (seen.is_step, State.WAITING),
        (seen.is_aside or seen.paused_since_ms is not None, State.PAUSED),
        (bool(seen.worker), State.ASSIGNED),
    )
    return next((state for is_so, state in known if is_so), State.WAITING)


def _trace(reply: Any) -> Trace:
    now, envelope, lock, outcome, due, dead_at, needs, history, *more = reply
    asked, unique, is_aside, pauses, line, is_step, group, biography = more
    worker, _, token = shown(lock).rpartition("#")
    attempts, deaths, steals = tallies(history or biography)
    return Trace(
        now_ms=int(now),
        envelope=raw(envelope),
        worker=worker,
        token=token,
        outcome=raw(outcome),
        due_ms=_milliseconds(due),
        dead_at_ms=_milliseconds(dead_at),
        needs=shown(needs),
        attempts=attempts,
        deaths=deaths,
        steals=steals,
        is_cancelling=bool(asked),
        unique=shown(unique)[:1],
        is_aside=bool(is_aside),
        pauses=Pauses.read(pauses),
        line=shown(line).partition("\0")[0] if len(line) > 1 else "",
        is_step=bool(is_step),
        group=GroupProgress.read(group),
        failures=failures(history),
        events=events(history or biography),
    )


_ENDS = ("done", "cancelled", "expired", "forgotten", "dropped")


def _milliseconds(score: Any) -> int | None:
    return number(score) if score else None


def _counts(reply: Any) -> Counts:
    now, urgent, normal, low, tasks, assigned, outcomes, delayed, dead = reply[:9]
    parked, paused, input_ended, in_lines, held_back, steps, stats = reply[9:16]
    upkeep, leases, loads, able, pauses = reply[16:]
    totals = _numbers(stats)
    # Nobody counts submissions: each task is still there, or its end was counted.
    submitted = int(tasks) + sum(totals.get(end, 0) for end in _ENDS)
    if submitted:
        totals["submitted"] = submitted
    return Counts(
        now_ms=int(now),
        inbox=(int(urgent), int(normal), int(low)),
        tasks=int(tasks),
        assigned=int(assigned),
        outcomes=int(outcomes),
        delayed=int(delayed),
        dead=int(dead),
        parked=int(parked),
        input_ended=bool(input_ended),
        stats=totals,
        upkeep=_numbers(upkeep),
        leases=_numbers(leases),
        loads=_numbers(loads),
        abilities=_numbers(able),
        paused=int(paused),
        pauses=Pauses.read(pauses),
        in_lines=int(in_lines),
        held_back=int(held_back),
        steps=int(steps),
    )


def _numbers(flat: Any) -> dict[str, int]:
    """Leave out what is no number: a foreign value must not hide the rest."""
    read = ((name, number(value)) for name, value in pairs(flat).items())
    return {name: value for name, value in read if value is not None}
