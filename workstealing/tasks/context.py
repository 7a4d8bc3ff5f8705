"""What a running task may ask about itself.

A task gets its context through a parameter that is annotated `ExecutionContext`, or
from `current_context()` anywhere below it, in threads of its own too if they were
started with `contextvars.copy_context()`.

Another thread tells the task that it should stop. A flag is a plain attribute: set
once, never cleared, and read without a lock.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import datetime
from typing import Any, Protocol, TextIO, final

from workstealing.errors import StopWork
from workstealing.tasks.noting import Progress

__all__ = ("Desk", "ExecutionContext", "current_context", "enter", "leave")


class Desk(Protocol):
    """Where a task keeps its notes; a worker brings one that outlives it."""

    def progress(self, progress: Progress) -> None:
        """Show how far the task is."""

    def checkpoint(self) -> Any:
        """Return what was saved last, by this attempt or an earlier one."""

    def save(self, value: Any) -> bool:
        """Keep where to go on; False if it was not possible."""

    @property
    def has_notes(self) -> bool:
        """Tell whether anything is kept here."""


@final
class ExecutionContext:
    """One attempt at one task.

    Which task this is, and where it runs:
        id, name, version: as it was submitted.
        attempt: 1, then one more each time that it is tried again.
        worker, queue: who runs it, and where it comes from.

    For whom:
        principal, roles: on whose behalf it was called.
        deadline: when its caller gives up, if that was said.

    Whether to go on:
        cancelled: somebody asked for the task to be cancelled.
        lease_lost: another worker may be at it already.
        check(): raises `StopWork` in either case.

    What it tells:
        logger, stdout, stderr: to its caller, if that one asked for it.
        progress(): how far it is, for those who look.

    Where the next attempt starts:
        checkpoint: what was saved last.
        save(): keep it.

    The other methods are for workers.
    """

    __slots__ = (
        "_bring",
        "_cancelled",
        "_desk",
        "_lease_lost",
        "_stderr",
        "_stdout",
        "attempt",
        "deadline",
        "id",
        "name",
        "principal",
        "queue",
        "roles",
        "version",
        "worker",
    )

    def __init__(
        self,
        id: str,  # noqa: A002 - the word users know
        name: str,
        version: int = 1,
        attempt: int = 1,
        worker: str = "",
        queue: str = "",
        *,
        principal: str = "",
        roles: tuple[str, ...] = (),
        deadline: datetime | None = None,
    ) -> None:
        self.id = id
        self.name = name
        self.version = version
        self.attempt = attempt
        self.worker = worker
        self.queue = queue
        self.principal = principal
        """On whose behalf it was called."""
        self.roles = roles
        self.deadline = deadline
        """When its caller gives up."""
        self._cancelled = False
        self._lease_lost = False
        self._desk: Desk | None = None
        self._bring: Callable[[], Desk] | None = None
        self._stdout: Any = None
        self._stderr: Any = None

    @property
    def cancelled(self) -> bool:
        """Tell whether somebody asked for the task to be cancelled."""
        return self._cancelled

    @property
    def lease_lost(self) -> bool:
        """Tell whether another worker may be at this task already."""
        return self._lease_lost

    @property
    def logger(self) -> logging.Logger:
        """The task's own logger, `workstealing.task.<name>`, from INFO on."""
        logger = logging.getLogger(f"workstealing.task.{self.name}")
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
        return logger

    @property
    def stdout(self) -> TextIO:
        """Where the task prints: to its caller, if that one asked for it."""
        stream: TextIO = self._stdout or sys.stdout
        return stream

    @property
    def stderr(self) -> TextIO:
        """Where the task complains: to its caller, if that one asked for it."""
        stream: TextIO = self._stderr or sys.stderr
        return stream

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show those who look how far the task is; a few times a second at most."""
        desk = self._own_desk()
        if desk is not None:
            desk.progress(Progress(done=done, total=total, note=note[:200]))

    @property
    def checkpoint(self) -> Any:
        """What was saved last, by this attempt or one whose worker died; else None."""
        desk = self._own_desk()
        return None if desk is None else desk.checkpoint()

    def save(self, value: Any) -> bool:
        """Keep where to go on, as JSON, for the attempt after a crash or an error.

        False if it was not possible: Redis is away, or the task is another's by now.
        """
        desk = self._own_desk()
        return False if desk is None else desk.save(value)

    def check(self) -> None:
        """Raise `StopWork` if there is no point in going on."""
        if self._lease_lost:
            raise StopWork(f"the lease of {self.worker} on task {self.id} was lost")
        if self._cancelled:
            raise StopWork(f"task {self.id} was cancelled")

    def tell_cancelled(self) -> None:
        """Let the task know, from any thread, that it was cancelled."""
        self._cancelled = True

    def tell_lease_lost(self) -> None:
        """Let the task know, from any thread, that its lease was lost."""
        self._lease_lost = True

    @property
    def has_notes(self) -> bool:
        """Tell whether it noted anything that is to end with it."""
        return self._desk is not None and self._desk.has_notes

    def offer(self, bring: Callable[[], Desk]) -> None:
        """Have a place for its notes brought when it has any; for workers."""
        self._bring = bring

    def divert(self, stdout: Any, stderr: Any) -> None:
        """Lead its streams elsewhere, or with None back; for workers."""
        self._stdout, self._stderr = stdout, stderr

    def _own_desk(self) -> Desk | None:
        if self._desk is None and self._bring is not None:
            self._desk = self._bring()
        return self._desk

    def __repr__(self) -> str:
        return (
            f"<ExecutionContext {self.name}@{self.version} {self.id}"
            f" attempt {self.attempt} on {self.worker or 'no worker'}>"
        )


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
