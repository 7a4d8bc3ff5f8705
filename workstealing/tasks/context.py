"""What a running task may ask about itself.

A task gets its context through a parameter that is annotated `ExecutionContext`, or
from `current_context()` anywhere below it, in threads of its own too if they were
started with `contextvars.copy_context()`.

Another thread tells the task that it should stop. A flag is a plain attribute: set
once, never cleared, and read without a lock.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import final

from workstealing.errors import StopWork

__all__ = ("ExecutionContext", "current_context", "enter", "leave")


@final
class ExecutionContext:
    """One attempt at one task."""

    __slots__ = (
        "_cancelled",
        "_lease_lost",
        "attempt",
        "id",
        "name",
        "queue",
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
    ) -> None:
        self.id = id
        self.name = name
        self.version = version
        self.attempt = attempt
        self.worker = worker
        self.queue = queue
        self._cancelled = False
        self._lease_lost = False

    @property
    def cancelled(self) -> bool:
        """Tell whether somebody asked for the task to be cancelled."""
        return self._cancelled

    @property
    def lease_lost(self) -> bool:
        """Tell whether another worker may be at this task already."""
        return self._lease_lost

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
