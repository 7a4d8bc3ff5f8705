"""What a worker asks of Redis while it works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.call import Argument, Call
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import raw, text, texts
from workstealing.queue.scripts import load_script
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.attempt import Report, Taken

__all__ = ("Exchanged", "exchange", "park", "release", "steal")


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a worker learns from one exchange."""

    tasks: tuple[Taken, ...]
    refused: tuple[str, ...]
    """Reported, but by then another's."""
    cancelled: tuple[str, ...]
    """Of those that it holds."""
    victims: tuple[tuple[str, int], ...]
    """Some workers with a deque to rob, when it was given nothing."""
    unfinished: int
    """Tasks in the queue that still want to be run, here or elsewhere."""
    is_closed: bool
    is_overdue: bool
    """Upkeep is overdue, and this worker was chosen for it."""
    delayed: int
    """Unfinished tasks that are not due yet."""


def exchange(
    keys: QueueKeys,
    settings: QueueSettings,
    worker: str,
    incarnation: str,
    *,
    want: int,
    keep: int,
    reports: Sequence[Report] = (),
    known: Sequence[str] | None = None,
) -> Call[Exchanged | None]:
    """Report, renew the lease, take what is next; None if the worker was struck off.

    *known* names what the worker holds, after a reply was lost.
    """
    flat: list[Argument] = [
        worker,
        incarnation,
        settings.lease_ms,
        want,
        keep,
        settings.retention_ms,
        settings.outcomes,
        settings.upkeep_ms,
        -1 if known is None else len(known),
        *(known or ()),
    ]
    for report in reports:
        flat += (report.id, report.token, report.verdict, report.outcome)
        flat.append(report.delay_ms)
    return Call(
        load_script(__package__, "exchange"),
        (
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.done,
            keys.outbox,
            keys.later,
            keys.dead,
            keys.workers,
            keys.members,
            keys.loads,
            keys.deque(worker),
            keys.running(worker),
            keys.control,
            keys.stats,
            keys.history,
            keys.cancels,
            keys.upkeep,
            keys.parked,
            keys.awaited,
            keys.graves,
        ),
        tuple(flat),
        _exchanged,
        is_raw=True,
    )


def steal(
    keys: QueueKeys, victim: str, thief: str, *, most: int = 500, wake: bool = False
) -> Call[int]:
    """Move half of the victim's deque, from its back, to a thief that has nothing.

    What the thief cannot run stays where it is.
    """
    return Call(
        load_script(__package__, "steal"),
        (
            keys.deque(victim),
            keys.deque(thief),
            keys.lock,
            keys.loads,
            keys.members,
            keys.control,
            keys.stats,
            keys.history,
            keys.bell,
            keys.task,
        ),
        (victim, thief, most, int(wake)),
        int,
    )


def release(keys: QueueKeys, worker: str, tasks: Sequence[Taken]) -> Call[int]:
    """Put tasks that were not begun back to the front of the worker's own deque."""
    flat: list[Argument] = [worker]
    for task in tasks:
        flat += (task.id, task.token)
    return Call(
        load_script(__package__, "release"),
        (
            keys.deque(worker),
            keys.running(worker),
            keys.lock,
            keys.loads,
            keys.control,
        ),
        tuple(flat),
        int,
    )


def park(keys: QueueKeys, worker: str, task: Taken, ability: str) -> Call[bool]:
    """Put a task aside until a worker joins that can run it."""
    return Call(
        load_script(__package__, "park"),
        (
            keys.parked_for(ability),
            keys.parkings,
            keys.parked,
            keys.running(worker),
            keys.lock,
        ),
        (task.id, f"{worker}#{task.token}", ability),
        bool,
    )


def _exchanged(reply: Any) -> Exchanged | None:
    if text(reply[0]) == "lost":
        return None
    _, tasks, refused, cancelled, victims, facts = reply
    ids = texts(tasks[::4])
    tokens = texts(tasks[1::4])
    loads = texts(victims)
    return Exchanged(
        tuple(map(Taken, ids, tokens, tasks[2::4], map(raw, tasks[3::4]))),
        texts(refused),
        texts(cancelled),
        tuple((loads[i], int(float(loads[i + 1]))) for i in range(0, len(loads), 2)),
        facts[1],
        bool(facts[2]),
        bool(facts[3]),
        facts[4],
    )
