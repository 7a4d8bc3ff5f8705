"""What pausing asks of Redis: to pause and resume a queue or a task name, and to look.

A pause is kept in Redis and holds for every worker and recruit until it is resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import number, pairs, shown
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.tasks.outcome import moment_text

__all__ = (
    "Pauses",
    "Resumed",
    "count_paused",
    "first_paused",
    "pause",
    "read_pauses",
    "resume",
    "resume_all",
)

_script = queue_scripts(__package__)

_QUEUE = "*"
_SLICE = 500
# What stands in a line between the name and the id: \\0, 16 digits, \\0.
_SEQUENCE = 18


@dataclass(frozen=True, slots=True)
class Pauses:
    """The parts of a queue that are paused, and since when; false if none are.

    Times are milliseconds since 1970, by the clock of the server.
    """

    queue_since_ms: int | None = None
    """Since when all of the queue is paused; None if it is not."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """The names of tasks that are paused, and since when."""

    def __bool__(self) -> bool:
        """Return whether anything is paused."""
        return self.queue_since_ms is not None or bool(self.tasks)

    def since_ms(self, name: str) -> int | None:
        """Return since when tasks of a name are not begun; None if they are."""
        if self.queue_since_ms is not None:
            return self.queue_since_ms
        return self.tasks.get(name)

    def reason(self, name: str) -> str:
        """Return in words why tasks of a name are not begun; empty if they are."""
        if self.queue_since_ms is not None:
            return "the queue is paused"
        return f"task {name} is paused" if name in self.tasks else ""

    def sentences(self) -> list[str]:
        """Return in words all that is paused, and since when."""
        since = {f"task {name}": ms for name, ms in self.tasks.items()}
        if self.queue_since_ms is not None:
            since = {"the queue": self.queue_since_ms, **since}
        return [
            f"{what} is paused since {moment_text(ms)}" for what, ms in since.items()
        ]

    @staticmethod
    def read(flat: Any) -> Pauses:
        """Read name, since when, …; a name that is being resumed is not paused."""
        read = {name: number(since) or 0 for name, since in pairs(flat).items()}
        since = {name: ms for name, ms in sorted(read.items()) if ms}
        return Pauses(since.pop(_QUEUE, None), since)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What one part of resuming has done."""

    was_paused: bool
    moved: int
    """Tasks that went back to the front of their inboxes."""
    has_more: bool


def pause(keys: QueueKeys, task: str | None) -> Call[bool]:
    """Pause a task name, or all of a queue; False if it was paused already."""
    script = _script("pause")
    return Call(
        script,
        script.keys(keys),
        script.arguments(name=_QUEUE if task is None else task),
        lambda since: int(since) == 0,
    )


def resume(
    keys: QueueKeys, task: str | None, *, goes_on: bool, most: int = _SLICE
) -> Call[Resumed]:
    """Resume a task name, or all of a queue, and bring back a part of what waited.

    A call that *goes on* does nothing if the name was paused again meanwhile.
    """
    script = _script("resume")
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            name=_QUEUE if task is None else task, most=most, goes_on=int(goes_on)
        ),
        lambda reply: Resumed(int(reply[0]) > 0, int(reply[1]), bool(reply[2])),
    )


def resume_all(keys: QueueKeys, task: str | None) -> Flow[bool]:
    """Resume, and bring back all that waited; False if it was not paused."""
    done = first = yield from ask(resume(keys, task, goes_on=False))
    while done.has_more:
        done = yield from ask(resume(keys, task, goes_on=True))
    return first.was_paused


def read_pauses(keys: QueueKeys) -> RedisCommand[Pauses]:
    """Read what is paused."""

    def parse(reply: Any) -> Pauses:
        # Some clients return a mapping, others what the server sent.
        if isinstance(reply, Mapping):
            reply = [part for pair in reply.items() for part in pair]
        return Pauses.read(reply)

    return RedisCommand(("HGETALL", keys.paused), parse)


def count_paused(keys: QueueKeys, task: str) -> RedisCommand[int]:
    """Count the tasks of a paused name that were put aside."""
    return RedisCommand(("ZLEXCOUNT", keys.aside, *_range_of(task)), int)


def first_paused(
    keys: QueueKeys, task: str, *, most: int
) -> RedisCommand[tuple[str, ...]]:
    """Name the first tasks of a paused name that were put aside."""
    before = len(task) + _SEQUENCE
    return RedisCommand(
        ("ZRANGE", keys.aside, *_range_of(task), "BYLEX", "LIMIT", 0, most),
        lambda reply: tuple(shown(member)[before:] for member in reply),
    )


def _range_of(task: str) -> tuple[str, str]:
    return f"[{task}\0", f"({task}\1"
