"""What producers ask of Redis for tasks that are unique, or whose id is used again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import text
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call

__all__ = ("UniqueEnd", "UniqueRequest", "UniqueVerdict", "submit_unique")

_script = queue_scripts(__package__)

UniqueEnd = Literal["s", "d", "w"]
"""When a unique key is free: its task is started, has ended, its window is over."""


@dataclass(frozen=True, slots=True)
class UniqueRequest:
    """One task that is to be submitted, and what stands in its way."""

    id: str
    envelope: bytes
    is_drawn: bool
    """Its id was drawn for this submission, so nobody else has it."""
    priority: int
    due_ms: int = 0
    delay_ms: int = 0
    longest_ms: int = 0
    """How long replacing it may put it off in all; 0 is for ever."""
    key: str = ""
    """Its unique key; empty if it has none, and only its id is to be used again."""
    ends: UniqueEnd = "d"
    """When the key is free: it is started, it has ended, its window is over."""
    window_ms: int = 0
    on_conflict: str = "keep"
    again: bool = False
    seen: str = ""
    """The mark of the task of its id that may be forgotten."""
    replaced: bytes = b""
    """The outcome of a task that it replaces."""
    worker: str = ""
    """Who holds the task that has its key, as last read."""
    needs: str = ""
    """The ability that this one is parked for, as last read."""
    line: str = ""
    """Where it waits, if it has limits or a fair key."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """The numbers of these limits."""


@dataclass(frozen=True, slots=True)
class UniqueVerdict:
    """What became of a `UniqueRequest`."""

    verdict: Literal["new", "known", "ended", "moved", "full", "input_ended"]
    """`ended`: ask again with the mark. `moved`: ask again with its worker."""
    detail: str = ""
    """Of `known` and `moved` the id of the other task; of `ended` the mark."""
    state: str = ""
    """Of `known`: `live`, or how the other task has ended."""


def submit_unique(
    keys: QueueKeys, settings: QueueSettings, task: UniqueRequest
) -> Call[UniqueVerdict]:
    """Put one task into the queue, unless another has its unique key."""
    script = _script("submit_unique")

    def parse(reply: Any) -> UniqueVerdict:
        verdict, *more = map(text, reply)
        return UniqueVerdict(cast("Any", verdict), *more)

    return Call(
        script,
        script.keys(
            keys,
            deque=keys.deque(task.worker),
            running=keys.running(task.worker),
            parked_for=keys.parked_for(task.needs),
        ),
        script.arguments(
            id=task.id,
            envelope=task.envelope,
            is_drawn=int(task.is_drawn),
            priority=task.priority,
            due=task.due_ms,
            delay_ms=task.delay_ms,
            longest_ms=task.longest_ms,
            most=settings.max_length,
            key=task.key,
            ends=task.ends,
            window_ms=task.window_ms,
            on_conflict=task.on_conflict,
            again=int(task.again),
            seen=task.seen,
            replaced=task.replaced,
            retention_ms=settings.retention_ms,
            worker=task.worker,
            needs=task.needs,
            in_line=task.line,
            its_limits=[part for limit in task.limits.items() for part in limit],
        ),
        parse,
        replicas=settings.replicas,
    )
