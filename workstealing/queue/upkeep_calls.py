"""What upkeep asks of Redis: a survey, and one bounded part of each duty.

Upkeep is done by any worker that has a moment, so each call is safe to make at the same
time as another worker makes it, and to repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import number, pairs, shown, texts
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call
from workstealing.queue.worker_calls import Rescued
from workstealing.tasks.outcome import outcome_of_deaths, outcome_unknown

__all__ = (
    "Survey",
    "expire",
    "idle",
    "promote",
    "reassign",
    "reconcile",
    "record_duties",
    "survey",
    "unpark",
)

_script = queue_scripts(__package__)

_DEFAULTS = QueueSettings()
# Workers renew their leases every second; those at rest are woken to do so.
_GRACE_MS = 3000


@dataclass(frozen=True, slots=True)
class Survey:
    """The work that upkeep has found."""

    now_ms: int
    dead: tuple[str, ...]
    rich: tuple[str, ...]
    """Workers with at least two tasks in the deque, the longest first."""
    living: tuple[str, ...]
    """Some of the workers, if any is rich."""
    wanted: tuple[str, ...]
    """Abilities that tasks are parked for and that a worker has."""
    done_at: dict[str, int]
    """When each duty was last done, ms."""
    due_in_ms: int | None
    """Until the next delayed task is due."""
    resuming: tuple[str, ...]
    """Names of tasks that somebody began to resume."""
    due_schedules: int
    """Schedules whose tick has come."""
    has_old: bool
    """Whether outcomes or other old entries may have to be forgotten."""
    has_locks: bool
    """Whether there are locks to be compared with workers."""


def survey(
    keys: QueueKeys, settings: QueueSettings = _DEFAULTS, *, most: int = 8
) -> Call[Survey]:
    """Find work for upkeep; this also claims upkeep for the caller."""
    script = _script("survey")
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            most=most,
            lease_ms=settings.lease_ms,
            grace_ms=_GRACE_MS,
            gap_ms=2 * settings.upkeep_ms,
        ),
        _survey,
    )


def reassign(
    keys: QueueKeys, settings: QueueSettings, worker: str, *, most: int
) -> Call[Rescued]:
    """Give back the tasks of a dead worker."""
    script = _script("reassign")
    return Call(
        script,
        keys.of_worker(script, worker),
        script.arguments(
            worker=worker,
            most=most,
            most_deaths=settings.deaths,
            exhausted=outcome_of_deaths(settings.deaths),
            unknown=outcome_unknown(),
        ),
        Rescued.read,
    )


def idle(keys: QueueKeys, workers: Sequence[str]) -> Call[tuple[str, ...]]:
    """Name the idle among some workers."""
    script = _script("idle")
    own = [key for name in workers for key in (keys.deque(name), keys.running(name))]
    return Call(
        script, script.keys(keys, pairs=own), script.arguments(names=workers), texts
    )


def promote(keys: QueueKeys, *, most: int) -> Call[int]:
    """Move delayed tasks whose time has come to their inboxes."""
    script = _script("promote")
    return Call(script, script.keys(keys), script.arguments(most=most), int)


def expire(keys: QueueKeys, settings: QueueSettings, *, most: int) -> Call[int]:
    """Forget outcomes and dead letters that are too old or too many."""
    script = _script("expire")
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            most_outcomes=settings.outcomes,
            dead_retention_ms=settings.dead_retention_ms,
            most_dead=settings.dead_letters,
            most=most,
        ),
        int,
    )


def unpark(
    keys: QueueKeys, ability: str, *, most: int, is_able: bool = False
) -> Call[int]:
    """Give parked tasks back to their inboxes if a worker can run them now.

    If the caller *is able* to run them, there need not be such a worker.
    """
    script = _script("unpark")
    return Call(
        script,
        script.keys(keys, parked_for=keys.parked_for(ability)),
        script.arguments(ability=ability, most=most, is_able=int(is_able)),
        int,
    )


def reconcile(keys: QueueKeys, *, page: int) -> Call[int]:
    """Give back tasks that are locked to unknown workers, in a page of locks."""
    script = _script("reconcile")
    return Call(script, script.keys(keys), script.arguments(size=page), int)


def record_duties(keys: QueueKeys, by: str, duties: Sequence[str]) -> Call[int]:
    """Record that duties were done, and by whom."""
    script = _script("record_duties")
    return Call(script, script.keys(keys), script.arguments(by=by, duties=duties), int)


def _survey(reply: Any) -> Survey:
    now, dead, rich, living, wanted, done_at, due_in, resuming, *more = reply
    due_schedules, has_old, has_locks = map(int, more)
    return Survey(
        int(now),
        tuple(map(shown, dead)),
        tuple(map(shown, rich)),
        tuple(map(shown, living)),
        tuple(map(shown, wanted)),
        {duty: number(at) or 0 for duty, at in pairs(done_at).items()},
        None if int(due_in) < 0 else int(due_in),
        tuple(map(shown, resuming)),
        due_schedules,
        bool(has_old),
        bool(has_locks),
    )
