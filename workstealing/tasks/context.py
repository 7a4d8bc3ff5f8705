"""What a running task knows about itself, and what its worker tells it.

A task gets its context through a parameter that is annotated `ExecutionContext`, or
from `current_context()` in any function that it calls; in threads that it starts, too,
if they run in a `contextvars.copy_context()`.

A worker's threads set its flags and its output through `AttemptControl`, which tasks do
not see.
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar, Token
from datetime import datetime
from typing import Any, Protocol, TextIO, final

import msgspec

from workstealing.errors import ConfigurationError, StopWork
from workstealing.tasks.json_values import NOT_JSON, encode_value

__all__ = (
    "LARGEST_CHECKPOINT",
    "AttemptControl",
    "ExecutionContext",
    "NotesKeeper",
    "Progress",
    "TaskNotes",
    "control_of",
    "current_context",
    "encode_checkpoint",
    "enter",
    "leave",
)


class _Whereabouts(msgspec.Struct, eq=False):
    """Which task it is, and where it runs."""

    id: str
    name: str
    version: int = 1
    attempt: int = 1
    worker: str = ""
    queue: str = ""


@final
class ExecutionContext(_Whereabouts, kw_only=True, eq=False):
    """One attempt at one task.

    Which task this is, and where it runs:
        id, name, version: as it was submitted.
        attempt: 1, then one more each time that it is tried again.
        worker, queue: who runs it, and where it comes from.
        fence: a number that is larger with each worker and attempt that has the task.

    For whom:
        principal, roles: on whose behalf it was called.
        deadline: when its caller gives up, if that was said.

    Whether to go on:
        cancelled: somebody asked for the task to be cancelled.
        lease_lost: another worker may run the task already.
        check(): raises `StopWork` in either case.

    Its output:
        logger, stdout, stderr: go to its caller, too, if the caller asked for them.
        progress(): how far it is, shown in `handle.state()` and by inspectors.

    Where the next attempt starts:
        checkpoint: what was saved last.
        save(): keep it.
    """

    principal: str = ""
    """On whose behalf it was called."""
    roles: tuple[str, ...] = ()
    deadline: datetime | None = None
    """When its caller gives up."""
    _control: AttemptControl = msgspec.field(default_factory=lambda: AttemptControl())

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for the task to be cancelled."""
        return self._control.is_cancelled

    @property
    def lease_lost(self) -> bool:
        """Whether the lease was lost, so that another worker may run the task."""
        return self._control.is_lease_lost

    @property
    def fence(self) -> int:
        """The token of its lock: each later run of this task has a larger one.

        A guarded resource keeps the largest fence that it has seen and refuses smaller
        ones, so that a worker that lost its lease unknowingly can change nothing.
        """
        attempt = self._control.attempt
        token = "" if attempt is None else attempt.task.token
        # Without a queue, no other worker can have the task.
        return int(token) if token.isdecimal() else self.attempt

    @property
    def logger(self) -> logging.Logger:
        """The task's own logger, `workstealing.task.<name>`, from INFO on."""
        logger = logging.getLogger(f"workstealing.task.{self.name}")
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
        return logger

    @property
    def stdout(self) -> TextIO:
        """Where the task prints: to its caller, too, if the caller asked for it."""
        stream: TextIO = self._control.stdout or sys.stdout
        return stream

    @property
    def stderr(self) -> TextIO:
        """Its standard error: to its caller, too, if the caller asked for it."""
        stream: TextIO = self._control.stderr or sys.stderr
        return stream

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show how far the task is; it is published a few times a second at most."""
        notes = self._control.notes
        if notes is not None:
            # JSON has no form for the numbers of NumPy, and text for a Decimal.
            all_of_it = None if total is None else float(total)
            notes.progress(Progress(done=float(done), total=all_of_it, note=note[:200]))

    @property
    def checkpoint(self) -> Any:
        """What was saved last, by this attempt or one whose worker died; else None."""
        notes = self._control.notes
        return None if notes is None else notes.checkpoint()

    def save(self, value: Any) -> bool:
        """Keep where to continue, as JSON, for the attempt after a crash or an error.

        False if it was not possible: Redis cannot be reached, or the lease is lost.
        """
        notes = self._control.notes
        return False if notes is None else notes.save(value)

    def check(self) -> None:
        """Raise `StopWork` if there is no point in going on."""
        if self._control.is_lease_lost:
            raise StopWork(f"worker {self.worker} lost its lease on task {self.id}")
        if self._control.is_cancelled:
            raise StopWork(f"task {self.id} was cancelled")

    def __repr__(self) -> str:
        return (
            f"<ExecutionContext {self.name}@{self.version} {self.id}"
            f" attempt {self.attempt} on {self.worker or 'no worker'}>"
        )


class AttemptControl:
    """What a worker sets about a running attempt, and the task reads in its context.

    Any thread may set a flag, once; it is never cleared, and read without a lock.
    """

    # Defaults on the class: most attempts change none, and one is made per task.
    is_cancelled = False
    """Somebody asked for the task to be cancelled."""
    is_lease_lost = False
    """Another worker may run the task already."""
    stdout: Any = None
    """Where the task prints, if not to the process's own streams."""
    stderr: Any = None
    given_up: str | None = None
    """Why this attempt was the last, if the task was given up with it."""
    is_abandoned = False
    """It was reported or handed back while it runs: how it ends has no effect."""
    is_notified = False
    """Listeners and hooks of its end have been called, or are being called."""
    story: Any = None
    """Which hooks have been called, if the queue has any."""
    attempt: Any = None
    """The attempt that this controls."""
    output: NotesKeeper | None = None
    """Keeps its notes."""
    _notes: TaskNotes | None = None

    @property
    def notes(self) -> TaskNotes | None:
        """Where the task keeps its notes; None if nobody keeps any."""
        if self._notes is None and self.output is not None:
            self._notes = self.output.notes(self.attempt)
        return self._notes

    @property
    def has_notes(self) -> bool:
        """Whether the task noted anything that must be deleted when it ends."""
        return self._notes is not None and self._notes.has_notes


def control_of(context: ExecutionContext) -> AttemptControl:
    """Return the control of an attempt; for workers, not for tasks."""
    return context._control  # noqa: SLF001 - hidden from tasks, not from workers


class NotesKeeper(Protocol):
    """Keeps the notes of attempts, for a worker."""

    def notes(self, attempt: Any) -> TaskNotes:
        """Return the place for the notes of an attempt, when it first has any."""


class TaskNotes(Protocol):
    """Where a task keeps its progress and its checkpoint."""

    def progress(self, progress: Progress) -> None:
        """Show how far the task is."""

    def checkpoint(self) -> Any:
        """Return what was saved last, by this attempt or an earlier one."""

    def save(self, value: Any) -> bool:
        """Keep where to continue; False if it was not possible."""

    @property
    def has_notes(self) -> bool:
        """Whether anything is kept that must be deleted when the task ends."""


_current: ContextVar[ExecutionContext | None] = ContextVar(
    "workstealing_task", default=None
)


def current_context() -> ExecutionContext | None:
    """Return the context of the task that runs here, or None outside of tasks."""
    return _current.get()


def enter(context: ExecutionContext) -> Token[ExecutionContext | None]:
    """Make a context the current one; for workers. Give the token to `leave`."""
    return _current.set(context)


def leave(token: Token[ExecutionContext | None]) -> None:
    """Put back the context that was there before `enter`."""
    _current.reset(token)


LARGEST_CHECKPOINT = 256 * 1024
"""Bytes of one checkpoint."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a task is; `str()` says it in words."""

    done: float
    total: float | None = None
    note: str = ""

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read_or_none(progress: bytes | None) -> Progress | None:
        """Read what `encode` wrote; None if there is none, or nobody can read it.

        Infinity and NaN cannot be read, and any program that can write to Redis may
        have put something else there.
        """
        try:
            return None if progress is None else _DECODE(progress)
        except NOT_JSON:
            return None

    def __str__(self) -> str:
        words = _in_digits(self.done)
        if self.total is not None:
            words += f" of {_in_digits(self.total)}"
        return f"{words}, {self.note}" if self.note else words


def _in_digits(number: float) -> str:
    # `:g` alone would write a million as 1e+06.
    return f"{number:.0f}" if float(number).is_integer() else f"{number:g}"


def encode_checkpoint(value: Any) -> bytes:
    """Write a checkpoint as JSON; refuse a value that is not JSON or too large."""
    try:
        encoded = encode_value(value)
    except NOT_JSON as error:
        raise ConfigurationError(
            f"a checkpoint must have a form in JSON: {error}; save plain values"
        ) from error
    if len(encoded) > LARGEST_CHECKPOINT:
        raise ConfigurationError(
            f"the checkpoint has {len(encoded):,} bytes and the limit is"
            f" {LARGEST_CHECKPOINT:,}: store the data elsewhere and save where it is"
        )
    return encoded


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(Progress).decode
