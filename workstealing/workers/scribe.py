"""Writes down what tasks tell while they run: logs, progress, checkpoints.

A record is in Redis before the task goes on, so a crash loses nothing that was told. If
Redis is away it is dropped and counted, and the task goes on: it never sees an error of
ours. A task that tells nothing costs nothing.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import msgspec

from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.sync import Driver
from workstealing.errors import RedisError
from workstealing.queue import telling
from workstealing.tasks.attempt import Attempt, Report, Taken
from workstealing.tasks.capturing import Capture
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.noting import Progress, encode_checkpoint
from workstealing.workers.member import Member

__all__ = ("Scribe",)

logger = logging.getLogger(__name__)

_PROGRESS_EVERY = 0.1
_NOTHING: AbstractContextManager[object] = nullcontext()


class Scribe:
    """Sits beside the tasks of one worker."""

    def __init__(
        self, driver: Driver, member: Member, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._driver = driver
        self._member = member
        self._clock = clock

    def beside(self, attempt: Attempt) -> AbstractContextManager[object]:
        """Write down what an attempt tells, as long as the context lasts."""
        self.attend(attempt)
        return self._capture(attempt) if attempt.envelope.log else _NOTHING

    def attend(self, attempt: Attempt) -> None:
        """Be ready for what an attempt notes; enough if nobody wants its log."""
        # Most tasks note nothing: for those, nothing is made.
        attempt.context.offer(partial(self._desk, attempt.task))

    def settle(self, attempt: Attempt, report: Report | None) -> None:
        """Let go of the notes of a task that has ended."""
        if report is None or report.verdict in ("retry", "back"):
            return
        if not attempt.context.has_notes:
            return
        try:
            self._driver.call(telling.drop_notes(self._member.keys, attempt.task.id))
        except RedisError as error:
            logger.debug("notes of %s expire by themselves: %r", attempt.task.id, error)

    def _capture(self, attempt: Attempt) -> Capture:
        driver, member, task = self._driver, self._member, attempt.task

        def sink(record: LogRecord) -> bool:
            call = telling.log(
                member.keys, member.name, task, record.sequence, record.encode()
            )
            return driver.call(call)

        return Capture(attempt.context, sink)

    def _desk(self, task: Taken) -> _Desk:
        return _Desk(self._driver, self._member, task, self._clock)


class _Desk:
    """The notes of one attempt."""

    __slots__ = ("_clock", "_driver", "_member", "_shown_at", "_task", "has_notes")

    def __init__(
        self, driver: Driver, member: Member, task: Taken, clock: Clock
    ) -> None:
        self._driver = driver
        self._member = member
        self._task = task
        self._clock = clock
        self._shown_at = 0.0
        self.has_notes = False

    def progress(self, progress: Progress) -> None:
        """Show it, unless something was shown a moment ago."""
        now = self._clock.monotonic()
        is_last = progress.done == progress.total
        if self._shown_at and now - self._shown_at < _PROGRESS_EVERY and not is_last:
            return
        self._shown_at = now
        self._note("progress", progress.encode())

    def checkpoint(self) -> Any:
        """Read it; an error of Redis is the task's business here."""
        task = self._task
        call = telling.noted(self._member.keys, task.id, task.envelope, "checkpoint")
        saved = self._driver.call(call)
        if saved is None:
            return None
        # What an earlier attempt left behind is to end with the task, too.
        self.has_notes = True
        return msgspec.json.decode(saved)

    def save(self, value: Any) -> bool:
        """Keep it, if that is possible."""
        return self._note("checkpoint", encode_checkpoint(value))

    def _note(self, what: Any, value: bytes) -> bool:
        member, task = self._member, self._task
        self.has_notes = True
        try:
            call = telling.note(member.keys, member.name, task, what, value)
            return self._driver.call(call)
        except RedisError as error:
            logger.warning("the %s of task %s is not kept: %s", what, task.id, error)
            return False
