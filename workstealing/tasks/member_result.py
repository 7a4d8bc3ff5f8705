"""What the step after a task, or after a group, is given: results of those before it.

A group ends although members fail. So the step after it gets a `MemberResult` of each
member, in their order, with the value that it returned or with what became of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from workstealing.errors import TaskNotFound
from workstealing.tasks.envelope import After
from workstealing.tasks.json_values import NOT_JSON, decoder_for
from workstealing.tasks.outcome import ErrorReport, TaskOutcome

__all__ = (
    "MemberResult",
    "argument_of",
    "member_results",
    "takes_members",
    "with_argument",
)

R_co = TypeVar("R_co", covariant=True)


class MemberResult(
    msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, omit_defaults=True
):
    """What came of one member of a group.

    Attributes:
        id: of the member.
        state: `done`, `failed`, `dead`, `cancelled` or `expired`; `unknown` if its
            outcome is gone.
        value: what it returned; None unless it is done.
        error: the error that it raised, if it did.
        reason: why it is dead, cancelled or expired.
    """

    id: str
    state: Literal["done", "failed", "dead", "cancelled", "expired", "unknown"]
    value: R_co | None = None
    error: ErrorReport | None = None
    reason: str = ""
    refusal: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether it returned something."""
        return self.state == "done"

    def result(self) -> R_co:
        """Return what it returned, or raise what its handle would raise."""
        if self.state == "done":
            value: Any = self.value
            return value  # type: ignore[no-any-return]
        if self.state == "unknown":
            raise TaskNotFound(self.reason)
        problem = TaskOutcome(
            state=self.state, error=self.error, reason=self.reason, refusal=self.refusal
        ).problem(self.id)
        assert problem is not None, "only what is done has none"
        raise problem


def member_results(
    found: Sequence[tuple[str, bytes]],
) -> list[MemberResult[msgspec.Raw]]:
    """Return the members of a group by their outcomes; empty: it has none any more."""
    return [_member(task_id, outcome) for task_id, outcome in found]


def argument_of(after: After, found: Sequence[tuple[str, bytes]]) -> bytes:
    """Return the argument of a step, by the outcomes of those before it, as JSON."""
    if after.group:
        return msgspec.json.encode(member_results(found))
    ((task_id, outcome),) = found
    read = TaskOutcome.read(outcome) if outcome else None
    if read is None or read.state != "done":
        raise TaskNotFound(
            f"the result of task {task_id}, the step before it, is gone: it was"
            " forgotten, or the task is being replayed"
        )
    return bytes(read.result)


def takes_members(kind: Any) -> bool:
    """Return whether a type may be a list of objects, as the results of a group are."""
    try:
        decoder_for(kind)(b"[{}]")
    except NOT_JSON as error:
        # Fields that are missing, or too few members, do not matter here.
        return _NO_LIST_OF_OBJECTS.search(str(error)) is None
    return True


_NO_LIST_OF_OBJECTS = re.compile(r", got `array`$|, got `object` - at `\$\[[0.]+\]`$")


def with_argument(payload: msgspec.Raw, name: str, value: bytes) -> msgspec.Raw:
    """Return a payload with one more argument, which is JSON already."""
    rest = bytes(payload).strip().removeprefix(b"{").lstrip()
    comma = b"" if rest == b"}" else b","
    return msgspec.Raw(b"{%s:%s%s%s" % (msgspec.json.encode(name), value, comma, rest))


def _member(task_id: str, outcome: bytes) -> MemberResult[msgspec.Raw]:
    if not outcome:
        return MemberResult(
            id=task_id,
            state="unknown",
            reason=f"the outcome of task {task_id} is gone: it was forgotten, or the"
            " task is being replayed",
        )
    read = TaskOutcome.read(outcome)
    return MemberResult(
        id=task_id,
        state=read.state,
        value=read.result if read.state == "done" else None,
        error=read.error,
        reason=read.reason,
        refusal=read.refusal,
    )
