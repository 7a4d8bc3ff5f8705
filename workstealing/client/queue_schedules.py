"""The schedules of a queue: declaring, firing, listing and changing them, as flows.

Schedules live in Redis. A process declares those of its code when it begins to work for
the queue, as a worker or as a recruit. From then on any such process fires what is due,
by the definition that is in Redis and by the clock of the server.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workstealing._logs import BackgroundLogger
from workstealing.client.schedule_state import ScheduleState, state_of_schedule
from workstealing.errors import (
    BadSignature,
    ConfigurationError,
    DuplicateSchedule,
    InputEnded,
    QueueFull,
    ScheduleNotFound,
)
from workstealing.queue import schedule_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import number
from workstealing.queue.schedule_calls import (
    DeclaredSchedules,
    DueSchedule,
    Fired,
    Firing,
    ScheduleDeclaration,
    ScheduleRow,
)
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, Flow, Pipeline, ask
from workstealing.queue.unique_calls import UniqueRequest, submit_unique
from workstealing.tasks.schedule import (
    checked_schedule_name,
    due_ticks,
    jitter_of,
    tick_id,
)
from workstealing.tasks.schedule_definition import (
    ScheduleDefinition,
    changed_definition,
    signed_as,
)
from workstealing.tasks.signing import Signer
from workstealing.tasks.submission import Submission, new_ids

__all__ = ("QueueSchedules",)

logger = BackgroundLogger(__name__)

# The most that one round fires; the next round finds the rest.
_SCHEDULES_AT_ONCE = 20
_MOST_FIRINGS = 200
# How long until a schedule that cannot be read is tried again.
_SPOILT_MS = 60_000
_PAGE = 100
_RENEW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _CodeSchedule:
    definition: ScheduleDefinition
    keep: bool


class QueueSchedules:
    """Declares, fires, lists and changes the schedules of one queue."""

    def __init__(
        self,
        queue: str,
        keys: QueueKeys,
        settings: QueueSettings,
        signer: Signer | None,
        release: int,
    ) -> None:
        self._queue = queue
        self._keys = keys
        self._settings = settings
        self._signer = signer
        self._release = release
        self._code: dict[str, _CodeSchedule] = {}
        self._doubted: set[str] = set()
        self._renew_at = -math.inf
        self._since_ms = 0
        self._is_known_to_be_old = False
        self.has_code = release > 0
        """Whether to declare anything: schedules, or that a release dropped some."""

    def add(self, name: str, definition: ScheduleDefinition, *, keep: bool) -> None:
        """Add a schedule of the code; it is declared when this process works."""
        schedule = _CodeSchedule(definition, keep)
        if self._code.setdefault(name, schedule) is not schedule:
            raise DuplicateSchedule(
                f"a schedule '{name}' exists already: give this one another name="
            )
        self.has_code = True

    def declare(self) -> Flow[None]:
        """Make the schedules of the code known to all processes."""
        seen = yield from ask(schedule_calls.due_schedules(self._keys, most=0))
        declarations = [
            self._declaration(name, schedule, seen.now_ms)
            for name, schedule in tuple(self._code.items())
        ]
        declared = yield from ask(
            schedule_calls.declare_schedules(self._keys, self._release, declarations)
        )
        self._since_ms = declared.since_ms
        if declared.verdict == "old":
            self._say_that_it_is_old(declared)
            return
        self._is_known_to_be_old = False
        if self._release < declared.former:
            logger.warning(
                "release %s decides again which schedules there are, because no"
                " process of release %s has been at work for 5 minutes: %s brought back"
                " or changed, %s removed that it does not have",
                self._release,
                declared.former,
                declared.written,
                declared.removed,
            )
        elif declared.written or declared.removed:
            logger.info(
                "schedules declared: %s new or changed, %s that left the code removed",
                declared.written,
                declared.removed,
            )

    def is_renewal_due(self, now: float) -> bool:
        """Return whether to say again that this release is at work."""
        return self._release > 0 and now >= self._renew_at

    def renew(self, now: float) -> Flow[None]:
        """Say that this release is at work; declare again if another one was, too.

        So its schedules come back after a rollback, in processes that run already.
        """
        self._renew_at = now + _RENEW_SECONDS
        if self._since_ms:
            renewed = yield from ask(
                schedule_calls.declare_schedules(
                    self._keys, self._release, since_ms=self._since_ms
                )
            )
            if renewed.verdict == "ok":
                return
        yield from self.declare()

    def fire_due(self) -> Flow[int]:
        """Fire the ticks that are due; return how many this process dealt with."""
        seen = yield from ask(
            # Ask for more, so that schedules it cannot sign for do not hide others.
            schedule_calls.due_schedules(
                self._keys,
                most=_SCHEDULES_AT_ONCE + min(len(self._doubted), _MOST_FIRINGS),
            )
        )
        calls: list[Call[Fired]] = []
        for due in seen.schedules:
            try:
                calls += self._firings(due, seen.now_ms)
            except BadSignature as error:
                # Another process may have the secret for it.
                if due.name not in self._doubted:
                    self._doubted = {*self._doubted, due.name}
                    logger.warning("schedule %s is not fired here: %s", due.name, error)
            except ConfigurationError as error:
                logger.warning("schedule %s cannot be fired: %s", due.name, error)
                calls.append(
                    schedule_calls.fire(
                        self._keys,
                        due,
                        expected=due.tick,
                        following=seen.now_ms + _SPOILT_MS,
                    )
                )
        if not calls:
            return 0
        answers: list[Fired] = yield Pipeline(calls[:_MOST_FIRINGS])
        return sum(answer != "moved" for answer in answers)

    def put(self, name: str, definition: ScheduleDefinition) -> Flow[None]:
        """Write a schedule that was made at run time; it replaces an earlier one."""
        if name in self._code:
            raise _declared(name)
        seen = yield from ask(schedule_calls.due_schedules(self._keys, most=0))
        verdict = yield from ask(
            schedule_calls.put_schedule(
                self._keys,
                name,
                self._written(name, definition),
                tick=definition.timing.after(seen.now_ms),
            )
        )
        if verdict == "declared":
            raise _declared(name)

    def states(self) -> Flow[tuple[ScheduleState, ...]]:
        """Describe all schedules, in the order of their names."""
        cursor, found = "0", {}
        while True:
            page = yield from ask(
                schedule_calls.list_schedules(self._keys, cursor=cursor, size=_PAGE)
            )
            found.update(
                {row.name: state_of_schedule(row, self._signer) for row in page.rows}
            )
            cursor = page.cursor
            if cursor == "0":
                return tuple(found[name] for name in sorted(found))

    def state(self, name: str) -> Flow[ScheduleState]:
        """Describe one schedule."""
        _, row = yield from self._row(name)
        return state_of_schedule(row, self._signer)

    def pause(self, name: str) -> Flow[bool]:
        """Pause a schedule; return False if it was paused already."""
        verdict = yield from ask(schedule_calls.pause_schedule(self._keys, name))
        if verdict in ("unknown", "removed"):
            raise ScheduleNotFound(name)
        return verdict == "ok"

    def resume(self, name: str) -> Flow[bool]:
        """Resume a schedule from its next tick; return False if it was not paused.

        If it was removed, its code may declare it again.
        """
        try:
            now_ms, row = yield from self._row(name)
            tick = ScheduleDefinition.read(row.definition).timing.after(now_ms)
        except ScheduleNotFound:
            tick = 0
        verdict = yield from ask(schedule_calls.resume_schedule(self._keys, name, tick))
        if verdict == "unknown":
            raise ScheduleNotFound(name)
        return verdict != "already"

    def remove(self, name: str) -> Flow[bool]:
        """Remove a schedule; code that declares it does not bring it back."""
        return (yield from ask(schedule_calls.remove_schedule(self._keys, name)))

    def change(self, name: str, changes: Mapping[str, Any]) -> Flow[None]:
        """Change when a schedule ticks, or what happens to missed ticks."""
        verdict = "moved"
        while verdict == "moved":
            now_ms, row = yield from self._row(name)
            former = self._read(name, row.definition)
            definition = changed_definition(former, changes)
            verdict = yield from ask(
                schedule_calls.put_schedule(
                    self._keys,
                    name,
                    self._written(name, definition),
                    expected=row.definition,
                    tick=definition.timing.after(now_ms),
                    ticks_anew=definition.timing != former.timing,
                )
            )

    def run(self, name: str) -> Flow[Submission]:
        """Submit its task now, in addition to its ticks; a unique task may be there."""
        now_ms, row = yield from self._row(name)
        definition = self._read(name, row.definition)
        # Two runs within one millisecond must have different ids.
        task_id = f"{tick_id(name, now_ms)}-{new_ids(1)[0][:8]}"
        firing = self._firing(name, definition, now_ms, now_ms, run_as=task_id)
        request = UniqueRequest(
            firing.id,
            firing.envelope,
            is_drawn=False,
            priority=firing.priority,
            key=firing.key,
            ends=firing.ends,
            window_ms=firing.window_ms,
            line=firing.line,
            limits=firing.limits,
        )
        answer = yield from ask(submit_unique(self._keys, self._settings, request))
        if answer.verdict == "input_ended":
            raise InputEnded(self._queue)
        if answer.verdict == "full":
            raise QueueFull(
                f"queue '{self._queue}' is full: max_length="
                f"{self._settings.max_length} tasks wait or run, so schedule '{name}'"
                " was not run; try again later"
            )
        if answer.verdict == "new":
            return Submission([firing.id])
        ended = {} if answer.state == "live" else {0: answer.state}
        return Submission([answer.detail], frozenset([0]), ended)

    def _row(self, name: str) -> Flow[tuple[int, ScheduleRow]]:
        call = schedule_calls.list_schedules(self._keys, name=name)
        page = yield from ask(call)
        if not page.rows:
            raise ScheduleNotFound(name)
        return page.now_ms, page.rows[0]

    def _say_that_it_is_old(self, declared: DeclaredSchedules) -> None:
        if self._is_known_to_be_old:
            return
        self._is_known_to_be_old = True
        newer = declared.former
        if declared.unknown:
            logger.warning(
                "release %s does not declare its schedules, because release %s is newer"
                " and at work; so these do not tick: %s. If release %s was rolled back,"
                " they come back within 6 minutes after its last process has ended",
                self._release,
                newer,
                ", ".join(declared.unknown),
                newer,
            )
        else:
            logger.info(
                "release %s does not declare its schedules: release %s is newer and at"
                " work",
                self._release,
                newer,
            )

    def _declaration(
        self, name: str, schedule: _CodeSchedule, now_ms: int
    ) -> ScheduleDeclaration:
        definition, timing = schedule.definition, schedule.definition.timing
        written = self._written(name, definition)
        return ScheduleDeclaration(
            name,
            _digest(written),
            _digest(str(timing).encode()),
            schedule.keep,
            written,
            timing.after(now_ms),
        )

    def _firings(self, due: DueSchedule, now_ms: int) -> Iterator[Call[Fired]]:
        """Return the calls that fire a schedule, one for each tick."""
        name = checked_schedule_name(due.name)
        definition = self._read(name, due.definition)
        ticks = due_ticks(
            definition.timing, definition.missed, max(0, number(due.tick) or 0), now_ms
        )
        if not ticks.fire:
            return iter(
                [
                    schedule_calls.fire(
                        self._keys,
                        due,
                        expected=due.tick,
                        following=ticks.following,
                        missed=ticks.missed,
                    )
                ]
            )
        expected = (due.tick, *map(str, ticks.fire[1:]))
        following = (*ticks.fire[1:], ticks.following)
        return (
            schedule_calls.fire(
                self._keys,
                due,
                expected=its,
                following=after,
                missed=0 if place else ticks.missed,
                firing=self._firing(name, definition, tick, now_ms),
            )
            for place, (its, tick, after) in enumerate(
                zip(expected, ticks.fire, following, strict=True)
            )
        )

    def _firing(
        self,
        name: str,
        definition: ScheduleDefinition,
        tick: int,
        now_ms: int,
        *,
        run_as: str = "",
    ) -> Firing:
        jitter_ms = 0 if run_as else jitter_of(name, tick, definition.jitter_ms)
        task_id, signer = run_as or tick_id(name, tick), self._signer
        envelope = definition.envelope(
            tick + jitter_ms, now_ms, is_signed=signer is not None
        ).encode()
        if signer is not None:
            envelope = signer.sign(task_id, envelope)
        due_ms = tick + jitter_ms if jitter_ms else 0
        return Firing(
            tick,
            task_id,
            envelope,
            definition.priority,
            due_ms,
            definition.line,
            definition.limits,
            definition.unique,
            definition.unique_ends,
            definition.unique_ms,
        )

    def _written(self, name: str, definition: ScheduleDefinition) -> bytes:
        written = definition.encode()
        if self._signer is None:
            return written
        return self._signer.sign(signed_as(name), written)

    def _read(self, name: str, written: bytes) -> ScheduleDefinition:
        """Read a definition, if it is genuine: to fire it is to sign its tasks."""
        if self._signer is not None:
            self._signer.verify(signed_as(name), written)
        definition = ScheduleDefinition.read(written)
        if definition.sig and self._signer is None:
            raise BadSignature(
                name, "it is signed, and this process has no secret to sign its tasks"
            )
        return definition


def _declared(name: str) -> DuplicateSchedule:
    return DuplicateSchedule(
        f"a schedule '{name}' is declared by @queue.every: change that one, or give"
        " this one another name="
    )


def _digest(written: bytes) -> str:
    return hashlib.blake2b(written, digest_size=8).hexdigest()
