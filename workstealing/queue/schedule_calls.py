"""What is asked of Redis about schedules: to declare, list, change and fire them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import number, raw, shown, text
from workstealing.queue.steps import Argument, Call
from workstealing.queue.unique_calls import UniqueEnd

__all__ = (
    "DeclaredSchedules",
    "DueSchedule",
    "DueSchedules",
    "Fired",
    "Firing",
    "ScheduleDeclaration",
    "SchedulePage",
    "ScheduleRow",
    "declare_schedules",
    "due_schedules",
    "fire",
    "list_schedules",
    "pause_schedule",
    "put_schedule",
    "remove_schedule",
    "resume_schedule",
)

_script = queue_scripts(__package__)

Fired = Literal["fired", "passed", "moved"]
Declared = Literal["ok", "old", "again"]
Put = Literal["ok", "declared", "moved"]
Paused = Literal["ok", "already", "unknown", "removed"]

# A release of which no process has spoken for so long is no longer at work.
_SILENCE_MS = 300_000


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule whose tick has come."""

    key: bytes
    """Its name, as it was read."""
    tick: str
    """As it was read, to compare it when it is fired; a number, unless corrupt."""
    definition: bytes

    @property
    def name(self) -> str:
        """Return its name as text."""
        return shown(self.key)


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """The time of the server, and the schedules that are due."""

    now_ms: int
    schedules: tuple[DueSchedule, ...]


@dataclass(frozen=True, slots=True)
class Firing:
    """The task of one tick."""

    tick: int
    id: str
    envelope: bytes
    priority: int
    due_ms: int
    """0: at once."""
    line: str = ""
    """Where it waits, if it has limits or a fair key."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """The numbers of these limits."""
    key: str = ""
    """Its unique key; empty if it has none."""
    ends: UniqueEnd = "d"
    """When the key is free: it is started, it has ended, its window is over."""
    window_ms: int = 0


@dataclass(frozen=True, slots=True)
class ScheduleDeclaration:
    """A schedule of the code of a process."""

    name: str
    digest: str
    """Tells whether its code has changed."""
    timing: str
    """Tells whether it ticks at other times."""
    keep: bool
    """It stays when it has left the code."""
    definition: bytes
    tick: int
    """The first one, if it is new."""


@dataclass(frozen=True, slots=True)
class DeclaredSchedules:
    """What became of a declaration."""

    verdict: Declared
    """`old`: a newer release decides, nothing was changed; `again`: declare again."""
    written: int
    removed: int
    former: int
    """The release that decided before this call."""
    since_ms: int
    """When the release began to decide that does now."""
    unknown: tuple[str, ...]
    """Schedules that are not there because a newer release decides."""

    @staticmethod
    def read(reply: Any) -> DeclaredSchedules:
        """Read the reply of a script: verdict, four numbers, then names."""
        written, removed, former, since_ms = map(int, reply[1:5])
        return DeclaredSchedules(
            cast("Declared", text(reply[0])),
            written,
            removed,
            former,
            since_ms,
            tuple(map(shown, reply[5:])),
        )


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as it stands in Redis."""

    name: str
    definition: bytes
    next_ms: int | None
    last_tick_ms: int | None
    last_at_ms: int | None
    fired: int
    missed: int
    is_declared: bool
    paused_since_ms: int | None


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Some of the schedules."""

    now_ms: int
    cursor: str
    """Where the next page begins; "0" if this is the last."""
    rows: tuple[ScheduleRow, ...]


def due_schedules(keys: QueueKeys, *, most: int) -> Call[DueSchedules]:
    """Name the schedules whose tick has come; with *most* 0 only the time."""
    script = _script("due_ticks")

    def parse(reply: Any) -> DueSchedules:
        names, ticks, definitions = (reply[start::3] for start in (1, 2, 3))
        return DueSchedules(
            int(reply[0]),
            tuple(
                DueSchedule(raw(name), text(tick), raw(definition))
                for name, tick, definition in zip(
                    names, ticks, definitions, strict=True
                )
            ),
        )

    arguments = script.arguments(most=most)
    return Call(script, script.keys(keys), arguments, parse, is_raw=True)


def fire(
    keys: QueueKeys,
    due: DueSchedule,
    *,
    expected: str,
    following: int,
    missed: int = 0,
    firing: Firing | None = None,
) -> Call[Fired]:
    """Go on to the following tick, and submit the task of a firing if there is one.

    Nothing is done if the next tick of the schedule is no longer the *expected* one.
    """
    script = _script("fire")
    task = firing or Firing(0, "", b"", 1, 0)
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            name=due.key,
            expected=expected,
            definition=due.definition,
            following=following,
            missed=missed,
            tick=task.tick,
            id=task.id,
            envelope=task.envelope,
            priority=task.priority,
            due=task.due_ms,
            key=task.key,
            ends=task.ends,
            window_ms=task.window_ms,
            in_line=task.line,
            its_limits=[part for limit in task.limits.items() for part in limit],
        ),
        lambda reply: cast("Fired", text(reply)),
    )


def declare_schedules(
    keys: QueueKeys,
    release: int,
    schedules: Sequence[ScheduleDeclaration] = (),
    *,
    since_ms: int = 0,
) -> Call[DeclaredSchedules]:
    """Make the schedules of the code of a release known; the newest release decides.

    If it says *since* when its release decides, nothing is declared: it only says that
    the release is still at work.
    """
    script = _script("declare_schedules")
    flat: list[Argument] = []
    for one in schedules:
        flat += (one.name, one.digest, one.timing, int(one.keep))
        flat += (one.definition, one.tick)
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            release=release, since=since_ms, silence_ms=_SILENCE_MS, values=flat
        ),
        DeclaredSchedules.read,
    )


def put_schedule(
    keys: QueueKeys,
    name: str,
    definition: bytes,
    *,
    tick: int,
    expected: bytes = b"",
    ticks_anew: bool = True,
) -> Call[Put]:
    """Write a schedule at run time, or change one if it is still as *expected*.

    *expected* is its definition as the caller read it; empty for a new one.
    """
    script = _script("put_schedule")
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            name=name,
            definition=definition,
            expected=expected,
            tick=tick,
            ticks_anew=int(ticks_anew),
        ),
        lambda reply: cast("Put", text(reply)),
    )


def pause_schedule(keys: QueueKeys, name: str) -> Call[Paused]:
    """Pause a schedule."""
    return _pause(keys, name, resume=False, tick=0)


def resume_schedule(keys: QueueKeys, name: str, tick: int) -> Call[Paused]:
    """Resume a schedule, with this as its next tick."""
    return _pause(keys, name, resume=True, tick=tick)


def _pause(keys: QueueKeys, name: str, *, resume: bool, tick: int) -> Call[Paused]:
    script = _script("pause_schedule")
    return Call(
        script,
        script.keys(keys),
        script.arguments(name=name, resume=int(resume), tick=tick),
        lambda reply: cast("Paused", text(reply)),
    )


def remove_schedule(keys: QueueKeys, name: str) -> Call[bool]:
    """Remove a schedule, so that the code that declares it does not bring it back."""
    script = _script("remove_schedule")
    return Call(script, script.keys(keys), script.arguments(name=name), bool)


def list_schedules(
    keys: QueueKeys, *, cursor: str = "0", size: int = 100, name: str = ""
) -> Call[SchedulePage]:
    """Describe a page of the schedules, or one of them."""
    script = _script("list_schedules")

    def parse(reply: Any) -> SchedulePage:
        rows = tuple(
            _row(*reply[start : start + 6]) for start in range(2, len(reply), 6)
        )
        return SchedulePage(int(reply[0]), text(reply[1]), rows)

    arguments = script.arguments(cursor=cursor, size=size, name=name)
    return Call(script, script.keys(keys), arguments, parse, is_raw=True)


def _row(
    name: Any, definition: Any, tick: Any, firings: Any, declared: Any, paused: Any
) -> ScheduleRow:
    counted = [number(part) for part in shown(firings).split(":")]
    last, at, fired, missed, *_ = [*counted, None, None, None, None]
    return ScheduleRow(
        shown(name),
        raw(definition),
        number(tick),
        last or None,
        at or None,
        fired or 0,
        missed or 0,
        bool(declared),
        number(paused),
    )
