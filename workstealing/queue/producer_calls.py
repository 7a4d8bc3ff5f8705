"""What producers ask of Redis: to submit, await, cancel and replay tasks.

What they ask of unique tasks is in `unique_calls`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, cast

from workstealing.errors import NotUnique
from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import raw, text
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Argument, Call, RedisCommand

__all__ = (
    "Cancelled",
    "RequestedOutcome",
    "Submitted",
    "cancel",
    "cancel_all",
    "count_refusals",
    "end_input",
    "forget",
    "is_input_ended",
    "read_outcomes",
    "replay",
    "request_outcome",
    "submit",
)

_script = queue_scripts(__package__)

Cancelled = Literal["unknown", "ended", "asked", "cancelled", "moved"]


@dataclass(frozen=True, slots=True)
class Submitted:
    """Whether the queue took a submission."""

    verdict: Literal["ok", "full", "input_ended"]
    known: frozenset[int]
    """Positions of ids that were there already."""
    ended: Mapping[int, str] = field(default_factory=dict)
    """How those of them have ended that have."""


@dataclass(frozen=True, slots=True)
class RequestedOutcome:
    """An outcome, or why there is none."""

    verdict: Literal["ended", "requested", "pending", "unknown", "lost"]
    """`requested`: it will be published. `lost`: it is a dead letter without one."""
    outcome: bytes = b""


def submit(
    keys: QueueKeys,
    settings: QueueSettings,
    tasks: Sequence[tuple[str, bytes]],
    *,
    priority: int,
    due_ms: int = 0,
    delay_ms: int = 0,
    channel: str = "",
    lines: Sequence[str] = (),
    limits: Mapping[str, str] | None = None,
    refusals: int = -1,
    is_new: bool = False,
) -> Call[Submitted]:
    """Put up to a thousand tasks, id and envelope, of one priority into the queue.

    Their outcomes are published on *channel*, if one is named. *lines* names the line
    of each, if any has one, and *limits* the numbers of the limits in those names.
    Calls that are sent together each pass the number of *refusals* read before the
    first, so that none is accepted after another was refused. If tasks are *new*, their
    ids were drawn for this call, which is never sent again, so nothing is looked up.
    """
    script = _script("submit")
    firsts = range(len(tasks)) if is_new else _firsts(tasks)
    once = tasks if len(firsts) == len(tasks) else [tasks[at] for at in firsts]
    flat: list[Argument] = list(chain.from_iterable(once))
    if lines:
        flat += [lines[position] for position in firsts]
        flat += [part for limit in (limits or {}).items() for part in limit]

    def parse(reply: Any) -> Submitted:
        verdict = cast("Literal['ok', 'full', 'input_ended']", text(reply[0]))
        states = {
            firsts[int(position)]: text(state)
            for position, state in zip(reply[1::2], reply[2::2], strict=True)
        }
        known = set(states)
        if verdict == "ok" and len(firsts) < len(tasks):
            known.update(set(range(len(tasks))).difference(firsts))
        ended = {at: state for at, state in states.items() if state != "live"}
        return Submitted(verdict, frozenset(known), ended)

    return Call(
        script,
        script.keys(keys),
        script.arguments(
            priority=priority,
            due=due_ms,
            delay_ms=delay_ms,
            most=settings.max_length,
            refusals=refusals,
            is_new=int(is_new),
            count=len(firsts),
            channel=channel,
            tasks=flat,
        ),
        parse,
        replicas=settings.replicas,
    )


def count_refusals(keys: QueueKeys) -> RedisCommand[int]:
    """Count how often a queue with a `max_length` was full in the midst of calls."""
    return RedisCommand(
        ("HGET", keys.control, "refusals"), lambda reply: int(reply or 0)
    )


def request_outcome(
    keys: QueueKeys, task_id: str, channel: str
) -> Call[RequestedOutcome]:
    """Read the outcome of a task, or have it published when the task ends."""
    script = _script("request_outcome")

    def parse(reply: Any) -> RequestedOutcome:
        verdict = cast(
            "Literal['ended', 'requested', 'unknown', 'lost']", text(reply[0])
        )
        return RequestedOutcome(verdict, *map(raw, reply[1:]))

    return Call(
        script,
        script.keys(keys),
        script.arguments(id=task_id, channel=channel),
        parse,
        is_raw=True,
    )


def read_outcomes(keys: QueueKeys, ids: Sequence[str]) -> Call[list[RequestedOutcome]]:
    """Read the outcomes of several tasks."""
    script = _script("read_outcomes")

    def parse(reply: Any) -> list[RequestedOutcome]:
        return [
            RequestedOutcome(cast("Any", text(verdict)), raw(outcome))
            for verdict, outcome in zip(reply[::2], reply[1::2], strict=True)
        ]

    return Call(
        script, script.keys(keys), script.arguments(ids=ids), parse, is_raw=True
    )


def cancel(
    keys: QueueKeys,
    settings: QueueSettings,
    task_id: str,
    worker: str,
    outcome: bytes,
    *,
    needs: str = "",
) -> Call[Cancelled]:
    """Cancel a task that *worker* holds, or that is parked for the ability *needs*.

    Each is empty if there is none.
    """
    call = cancel_all(keys, settings, [(task_id, outcome)], worker, needs)
    return Call(
        call.script, call.keys, call.arguments, lambda reply: call.parse(reply)[0]
    )


def cancel_all(
    keys: QueueKeys,
    settings: QueueSettings,
    outcomes: Sequence[tuple[str, bytes]],
    worker: str,
    needs: str,
) -> Call[list[Cancelled]]:
    """Cancel tasks that are in the same place; see `cancel`."""
    script = _script("cancel")
    return Call(
        script,
        script.keys(
            keys,
            deque=keys.deque(worker),
            running=keys.running(worker),
            parked_for=keys.parked_for(needs),
        ),
        script.arguments(
            worker=worker,
            needs=needs,
            retention_ms=settings.retention_ms,
            outcomes=[word for pair in outcomes for word in pair],
        ),
        lambda reply: [cast("Cancelled", text(one)) for one in reply],
    )


def replay(keys: QueueKeys, task_id: str, *, drop: bool) -> Call[bool]:
    """Put a dead letter back into its inbox, or drop it for good.

    Its answer raises `NotUnique` if another task has its unique key meanwhile.
    """
    script = _script("replay")

    def parse(reply: Any) -> bool:
        if isinstance(reply, int):
            return bool(reply)
        raise NotUnique(task_id, text(reply))

    arguments = script.arguments(id=task_id, drop=int(drop))
    return Call(script, script.keys(keys), arguments, parse)


def forget(keys: QueueKeys, ids: Sequence[str]) -> Call[int]:
    """Forget the outcomes of tasks that have ended."""
    script = _script("forget")
    return Call(script, script.keys(keys), script.arguments(ids=ids), int)


def end_input(keys: QueueKeys, *, ended: bool) -> Call[bool]:
    """End the input of a queue, or reopen it."""
    script = _script("end_input")
    return Call(script, script.keys(keys), script.arguments(ended=int(ended)), bool)


def is_input_ended(keys: QueueKeys) -> RedisCommand[bool]:
    """Tell whether no more input comes."""
    return RedisCommand(("HEXISTS", keys.control, "input_ended"), bool)


def _firsts(tasks: Sequence[tuple[str, bytes]]) -> Sequence[int]:
    """Return the position of the first task of each id; most callers repeat none."""
    if len({task_id for task_id, _ in tasks}) == len(tasks):
        return range(len(tasks))
    seen: dict[str, int] = {}
    for position, (task_id, _) in enumerate(tasks):
        seen.setdefault(task_id, position)
    return list(seen.values())
