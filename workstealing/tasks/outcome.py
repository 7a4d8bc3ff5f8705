"""How a task ended, and where a task is.

An outcome is what a worker leaves behind: compact JSON, fields at their default left
out, so `{}` is a task that is done and returned nothing. What is kept of the error of a
failed task is bounded.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import msgspec

from workstealing._printing import on_one_line
from workstealing.clock import utc_time
from workstealing.errors import (
    BadOutcome,
    BadSignature,
    NotPermitted,
    PayloadInvalid,
    TaskCancelled,
    TaskDead,
    TaskExpired,
    TaskFailed,
    UnknownTask,
    WorkStealingError,
)
from workstealing.tasks.context import Progress
from workstealing.tasks.json_values import NOT_JSON
from workstealing.tasks.retry import OUTCOME_UNKNOWN, Retry, Snooze

__all__ = (
    "MAX_RESULT",
    "UNFINISHED",
    "ErrorReport",
    "State",
    "TaskOutcome",
    "TaskState",
    "beginning",
    "moment_text",
    "outcome_of_deaths",
    "outcome_unknown",
    "refusal_of",
)

MAX_RESULT = 16 << 20
"""Bytes of one result, unless the queue says otherwise."""

_LONGEST_TRACEBACK = 8 * 1024
_LONGEST_MESSAGE = 1024
_SHORT_TRACEBACK = 1024
_SHORT_MESSAGE = 256
_NULL = msgspec.Raw(b"null")
_ASKED = tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in (Retry, Snooze))


class ErrorReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker reports of an error."""

    type: str
    """The class, with its module unless it is a built-in."""
    message: str = ""
    traceback: str = ""
    """The last 8 KiB of the text, for the end says where it happened."""

    @classmethod
    def of(cls, error: BaseException) -> ErrorReport:
        """Describe an error, whatever its own methods do."""
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        try:
            message = str(error)
            text = "".join(traceback.format_exception(error))
        except KeyboardInterrupt:
            raise
        except BaseException as failure:  # noqa: BLE001 - it is the user's __str__
            message = text = f"(its text cannot be shown: {type(failure).__name__})"
        return cls(
            f"{module}{kind.__qualname__}",
            beginning(message, _LONGEST_MESSAGE),
            _end(text, _LONGEST_TRACEBACK),
        )

    def shortened(self) -> ErrorReport:
        """Return what is kept of the error of an attempt that is made again."""
        return ErrorReport(
            self.type,
            beginning(self.message, _SHORT_MESSAGE),
            _end(self.traceback, _SHORT_TRACEBACK),
        )


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task ended, on which worker, when, and with what."""

    state: Literal["done", "failed", "dead", "cancelled", "expired"] = "done"
    result: msgspec.Raw = _NULL
    """JSON; null unless it is done."""
    error: ErrorReport | None = None
    reason: str = ""
    """Why it is dead, cancelled or expired."""
    task: str = ""
    """What it was, as `name@version`; a dead letter keeps its envelope instead."""
    worker: str = ""
    ended: int = 0
    """When, in milliseconds since 1970."""
    took: int = 0
    """How many milliseconds the last attempt lasted."""
    attempt: int = 1
    """The number of the last attempt."""
    refusal: tuple[str, ...] = ()
    """If a check refused it: the class of the error, and its arguments."""

    @property
    def began(self) -> int:
        """Return when the last attempt began, in milliseconds since 1970."""
        return self.ended - self.took

    def encode(self) -> bytes:
        """Write it as JSON."""
        return _ENCODE(self)

    @staticmethod
    def read(outcome: bytes) -> TaskOutcome:
        """Read what `encode` wrote."""
        try:
            return _DECODE(outcome)
        except NOT_JSON as error:
            raise BadOutcome(f"not an outcome: {error}") from error

    def as_state(self) -> TaskState:
        """Return it as the answer to "where is my task?"."""
        reason = self.reason
        if self.error is not None and (self.state == "failed" or not reason):
            reason = f"{self.error.type}: {self.error.message}"
        ended = self.ended or None
        return TaskState(State(self.state), self.worker, ended, reason, self.attempt)

    def value(self, task_id: str, read: Callable[[msgspec.Raw], Any]) -> Any:
        """Return its result, as *read* reads it; raise the error if it is not done."""
        problem = self.problem(task_id)
        if problem is not None:
            raise problem
        return read(self.result)

    def problem(self, task_id: str) -> WorkStealingError | None:
        """Return the error for its caller, or None if it is done."""
        error = self.error or ErrorReport("an unknown error")
        if self.state == "failed":
            message = error.message
            if error.type in _ASKED:
                # Or else nobody learns why it was not tried again, as it had asked.
                message = f"{message} ({self.reason})"
            return TaskFailed(task_id, error.type, message, error.traceback)
        if self.state == "dead" and self.refusal:
            return self._refused(task_id)
        if self.state == "dead":
            return TaskDead(task_id, self.reason or error.type, error.traceback)
        if self.state == "cancelled":
            return TaskCancelled(task_id, self.reason)
        if self.state == "expired":
            return TaskExpired(task_id, self.reason)
        return None

    def _refused(self, task_id: str) -> WorkStealingError:
        kind, *arguments = self.refusal
        try:
            return _REFUSALS[kind](*arguments)
        except (KeyError, TypeError):
            # Another release may refuse for more reasons than we know.
            return TaskDead(task_id, self.reason)


def outcome_of_deaths(deaths: int) -> bytes:
    """Return the outcome of a task that has seen as many workers die as it may.

    Redis cannot tell a worker that died from one that is silent, for instance because
    the task holds the interpreter; so the reason must not either.
    """
    reason = f"its worker died {deaths} times, or {_SILENT}"
    return TaskOutcome(state="dead", reason=reason).encode()


def outcome_unknown(*, left: bool = False) -> bytes:
    """Return the outcome of a task that was begun and must not be run twice."""
    what = "was stopped while it ran" if left else f"died while it ran, or {_SILENT}"
    reason = f"{OUTCOME_UNKNOWN}: its worker {what}"
    return TaskOutcome(state="dead", reason=reason).encode()


def refusal_of(error: BaseException) -> tuple[str, ...]:
    """Return what a caller needs to raise this error as it is; often nothing."""
    kind = type(error).__name__
    if _REFUSALS.get(kind) is not type(error):
        return ()
    return (kind, *(beginning(str(text), _LONGEST_MESSAGE) for text in error.args))


_SILENT = "was silent for longer than its lease"
_REFUSALS: dict[str, type[WorkStealingError]] = {
    kind.__name__: kind
    for kind in (BadSignature, UnknownTask, NotPermitted, PayloadInvalid)
}

_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(TaskOutcome).decode


class State(str, Enum):
    """Where a task is in its life; `str()` and f-strings give its value, as "done"."""

    UNKNOWN = "unknown"
    """Never submitted, or its outcome has expired."""
    WAITING = "waiting"
    """In the inbox, assigned to nobody."""
    DELAYED = "delayed"
    """Not due yet: submitted for later, or to be tried again."""
    ASSIGNED = "assigned"
    """In the deque of a worker, not begun."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """It raised and is not tried again; kept as a dead letter."""
    DEAD = "dead"
    """Given up for another reason; kept as a dead letter."""
    PARKED = "parked"
    """No live worker can run it."""
    PAUSED = "paused"
    """It waits, and the queue or its name is paused."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It was not begun in time."""

    def __str__(self) -> str:
        return self.value


UNFINISHED = frozenset(
    {
        *(State.WAITING, State.DELAYED, State.PAUSED, State.PARKED),
        *(State.ASSIGNED, State.RUNNING),
    }
)
"""The states of tasks that have not ended."""


@dataclass(frozen=True, slots=True)
class TaskState:
    """The answer to "where is my task?"; `str()` says it in words."""

    state: State
    worker: str = ""
    """Who holds it, or who ended it."""
    since_ms: int | None = None
    """Since when, in milliseconds since 1970; for a delayed task, when it is due."""
    reason: str = ""
    attempt: int = 1
    progress: Progress | None = None
    """How far it says that it is, while it runs."""

    def __str__(self) -> str:
        words = [self.state.value]
        if self.worker:
            words += ["to" if self.state is State.ASSIGNED else "on", self.worker]
        if self.since_ms is not None:
            words += ["until" if self.state is State.DELAYED else "since"]
            words += [moment_text(self.since_ms)]
        if self.progress is not None:
            words.append(f"({self.progress})")
        return on_one_line(
            " ".join(words) + (f": {self.reason}" if self.reason else "")
        )


def beginning(text: str, most: int) -> str:
    """Return the first so many bytes of a text, as text that can be written."""
    encoded = text.encode("utf-8", "backslashreplace")
    kept = encoded[:most].decode("utf-8", "ignore")
    return kept if len(encoded) <= most else f"{kept}…"


def moment_text(ms: int) -> str:
    """Return a time, given in milliseconds since 1970, as text."""
    when = utc_time(ms)
    if when is None:
        # A calendar ends with the year 9999, and a delay need not.
        return f"{ms} ms after 1970"
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _end(text: str, most: int) -> str:
    encoded = text.encode("utf-8", "backslashreplace")
    kept = encoded[-most:].decode("utf-8", "ignore")
    return kept if len(encoded) <= most else f"…{kept}"
