"""What chains and groups ask of Redis: to be submitted, and how far a group is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import text
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Argument, Call, RedisCommand

__all__ = ("GroupProgress", "NewGroup", "NewStep", "read_group", "submit_steps")

_script = queue_scripts(__package__)

# A group is given up if its producer is silent for so long between two slices of it.
_PATIENCE_MS = 60_000


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far a group is."""

    total: int
    """Its members."""
    left: int
    """Those that have not ended."""
    failed: int
    """Those that ended otherwise than done: failed, dead, cancelled or expired."""

    @property
    def done(self) -> int:
        """Those that are done."""
        return self.total - self.left - self.failed

    @classmethod
    def read(cls, reply: Any) -> GroupProgress | None:
        """Read what Redis keeps of a group; None if that is nothing."""
        if not reply:
            return None
        left, total, failed, *_ = map(int, text(reply).split(":"))
        return cls(total, left, failed)

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.total - self.left} of {self.total} members{failed}"


@dataclass(frozen=True, slots=True)
class NewStep:
    """One task of a chain or a group, as it is put into the queue."""

    id: str
    envelope: bytes
    priority: int = 1
    due_ms: int = 0
    delay_ms: int = 0
    line: str = ""
    follower: str = ""
    """The step after it in a chain; or its group, if it is a member."""
    is_member: bool = False
    waits: bool = False
    """For the step or the group before it."""

    def arguments(self) -> tuple[Argument, ...]:
        """Return it as the script takes it."""
        mark = f"{'g' if self.is_member else 'c'}{self.follower}"
        return (
            self.id,
            self.envelope,
            self.priority,
            self.due_ms,
            self.delay_ms,
            self.line,
            mark if self.follower else "",
            int(self.waits),
        )


@dataclass(frozen=True, slots=True)
class NewGroup:
    """The group whose members are put into the queue, in one call or several."""

    id: str = ""
    """Empty: there is none, only a chain."""
    members: int = 0
    place: int = 0
    """Of this call among all that it takes."""
    is_last: bool = True


def submit_steps(
    keys: QueueKeys,
    settings: QueueSettings,
    steps: Sequence[NewStep],
    group: NewGroup,
    *,
    whole: int,
    limits: Mapping[str, str],
) -> Call[Literal["ok", "full", "input_ended", "over"]]:
    """Put up to a thousand steps, of *whole* in all, into the queue."""
    script = _script("submit_steps")
    flat = [argument for step in steps for argument in step.arguments()]
    flat += [part for limit in limits.items() for part in limit]
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            group=group.id,
            members=group.members,
            place=group.place,
            is_last=int(group.is_last),
            whole=whole,
            most=settings.max_length,
            patience_ms=_PATIENCE_MS,
            retention_ms=settings.retention_ms,
            count=len(steps),
            its_steps=flat,
        ),
        lambda reply: cast("Any", text(reply)),
        replicas=settings.replicas,
    )


def read_group(keys: QueueKeys, group: str) -> RedisCommand[GroupProgress | None]:
    """Read how far a group is; None if nothing is kept of it."""
    return RedisCommand(("HGET", keys.groups, group), GroupProgress.read)
