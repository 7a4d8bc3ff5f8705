"""What upkeep asks of Redis: bounded parts of each duty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.call import Call
from workstealing.queue.dying import outcome_unknown
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import number, pairs, shown, texts
from workstealing.queue.scripts import load_script
from workstealing.queue.settings import QueueSettings

__all__ = (
    "Survey",
    "did",
    "expire",
    "idle",
    "promote",
    "reassign",
    "reconcile",
    "survey",
    "unpark",
)


@dataclass(frozen=True, slots=True)
class Survey:
    """What upkeep could do."""

    now_ms: int
    dead: tuple[str, ...]
    rich: tuple[str, ...]
    """Workers with at least two tasks waiting, the richest first."""
    living: tuple[str, ...]
    """Some of the workers, if anybody is rich."""
    wanted: tuple[str, ...]
    """Abilities that tasks are parked for and that a worker has."""
    done_at: dict[str, int]
    """When each duty was last done, ms."""
    due_in_ms: int | None
    """Until the next delayed task is due."""


def survey(keys: QueueKeys, *, most: int = 8) -> Call[Survey]:
    """Look around; whoever surveys is taken to be at it."""
    return Call(
        load_script(__package__, "survey"),
        (
            keys.workers,
            keys.loads,
            keys.parkings,
            keys.able,
            keys.upkeep,
            keys.later,
            *keys.inboxes,
            keys.bell,
        ),
        (most,),
        _survey,
    )


def reassign(
    keys: QueueKeys, settings: QueueSettings, worker: str, outcome: bytes, *, most: int
) -> Call[int]:
    """Give back what a dead worker held; -1 if it lives."""
    return Call(
        load_script(__package__, "reassign"),
        (
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.workers,
            keys.members,
            keys.loads,
            keys.deque(worker),
            keys.running(worker),
            keys.able,
            keys.stats,
            keys.bell,
            keys.done,
            keys.dead,
            keys.history,
            keys.cancels,
            keys.awaited,
        ),
        (worker, most, settings.deaths, outcome, outcome_unknown()),
        int,
    )


def idle(keys: QueueKeys, workers: Sequence[str]) -> Call[tuple[str, ...]]:
    """Tell which of some workers have nothing at all."""
    own = [key for name in workers for key in (keys.deque(name), keys.running(name))]
    script = load_script(__package__, "idle")
    return Call(script, tuple(own), tuple(workers), texts)


def promote(keys: QueueKeys, *, most: int) -> Call[int]:
    """Move delayed tasks whose time has come to their inboxes."""
    return Call(
        load_script(__package__, "promote"),
        (*keys.inboxes, keys.task, keys.later, keys.bell),
        (most,),
        lambda reply: int(reply[0]),
    )


def expire(keys: QueueKeys, settings: QueueSettings, *, most: int) -> Call[int]:
    """Forget outcomes and dead letters whose time is over, or that are too many."""
    return Call(
        load_script(__package__, "expire"),
        (keys.done, keys.outbox, keys.dead, keys.task, keys.history),
        (
            settings.outcomes,
            settings.dead_retention_ms,
            settings.dead_letters,
            most,
        ),
        int,
    )


def unpark(keys: QueueKeys, ability: str, *, most: int) -> Call[int]:
    """Give parked tasks back to their inboxes if a worker can run them now."""
    return Call(
        load_script(__package__, "unpark"),
        (
            keys.parked_for(ability),
            keys.parkings,
            keys.parked,
            keys.able,
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.bell,
        ),
        (ability, most),
        int,
    )


def reconcile(keys: QueueKeys, *, page: int) -> Call[int]:
    """Give back tasks of a page of locks whose worker nobody knows."""
    return Call(
        load_script(__package__, "reconcile"),
        (
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.workers,
            keys.upkeep,
            keys.bell,
        ),
        (page,),
        int,
    )


def did(keys: QueueKeys, by: str, duties: Sequence[str]) -> Call[int]:
    """Remember that duties were done, and by whom."""
    script = load_script(__package__, "did")
    return Call(script, (keys.upkeep, keys.stats), (by, *duties), int)


def _survey(reply: Any) -> Survey:
    now, dead, rich, living, wanted, done_at, due_in = reply
    return Survey(
        int(now),
        tuple(map(shown, dead)),
        tuple(map(shown, rich)),
        tuple(map(shown, living)),
        tuple(map(shown, wanted)),
        {duty: number(at) or 0 for duty, at in pairs(done_at).items()},
        None if int(due_in) < 0 else int(due_in),
    )
