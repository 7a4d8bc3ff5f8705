"""What a worker asks of Redis: to join, to exchange reports for tasks, to leave.

Only the holder of a task can change it: a worker that lost its lease changes nothing,
and learns of the loss from the reply.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.minute_calls import MINUTES_KEPT, TENS_KEPT
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.replies import (
    deliveries,
    deque_lengths,
    raw,
    shown,
    text,
    texts,
)
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Argument, Call, RedisCommand
from workstealing.tasks.attempt import Delivery, Report
from workstealing.tasks.outcome import (
    TaskOutcome,
    outcome_of_deaths,
    outcome_unknown,
)

__all__ = (
    "Departure",
    "Exchanged",
    "GivenUp",
    "Rescued",
    "begin",
    "choose_victim",
    "exchange",
    "find_capable",
    "flat_reports",
    "is_known",
    "join",
    "leave",
    "park",
    "record_minute",
    "release",
    "route",
    "steal",
)

_script = queue_scripts(__package__)
_NO_PAUSES = Pauses()
# Task names that are counted apart in one stretch of time.
_MOST_NAMES = 100

# Workers that are looked at for an ability; their descriptions are long.
_SAMPLE = 100


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a worker learns from one exchange."""

    tasks: tuple[Delivery, ...]
    refused: tuple[str, ...]
    """Tasks that it reported without holding their locks any more."""
    cancelled: tuple[str, ...]
    """Running tasks that it is asked to stop."""
    victims: tuple[tuple[str, int], ...]
    """Some workers and the lengths of their deques, if it was given nothing."""
    unfinished: int
    """Tasks of the queue that are not over, on any worker; -1 if not counted."""
    is_overdue: bool
    """Upkeep is overdue, and this worker was chosen for it."""
    delayed: int
    """Unfinished tasks that are not due yet."""
    held_back: int = 0
    """Unfinished tasks that were put aside, because their names are paused."""
    due_schedules: int = 0
    """Schedules whose tick has come; counted when the lease is renewed."""
    next_in_ms: int = -1
    """Until a delayed task, a rate or a schedule is due; -1 if none, or not looked."""
    pauses: Pauses = _NO_PAUSES
    """What of the queue is paused."""
    limited: int = 0
    """Unfinished tasks that limits hold back, in a few lines at most."""
    now_ms: int = 0
    """When it took place, by the clock of the server."""
    given_up: tuple[GivenUp, ...] = ()
    """Tasks that must not run twice and that the worker does not know of any more."""

    @property
    def runnable(self) -> int:
        """Unfinished tasks that run or could be begun now."""
        if self.pauses.queue_since_ms is not None:
            return 0
        return self.unfinished - self.delayed - self.held_back - self.limited


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A task that a script made a dead letter, as nobody is to run it again."""

    id: str
    task: str
    """Its name; empty if its envelope cannot be read."""
    reason: str

    @staticmethod
    def read(flat: Any) -> tuple[GivenUp, ...]:
        """Read what scripts tell: id, name, outcome, …"""
        ids, names = texts(flat[::3]), map(shown, flat[1::3])
        reasons = (TaskOutcome.read(raw(one)).reason for one in flat[2::3])
        return tuple(map(GivenUp, ids, names, reasons))


@dataclass(frozen=True, slots=True)
class Rescued:
    """What has become of the tasks of a worker that died."""

    returned: int
    """How many went back to the queue or were given up; -1 if it lives.

    Or -1 if another one has taken the name of a worker that comes back.
    """
    taken: tuple[str, ...] = ()
    """Ids of those that it had taken, one of which it may have been running."""
    given_up: tuple[GivenUp, ...] = ()

    @staticmethod
    def read(reply: Any) -> Rescued:
        """Read the reply of a script."""
        returned, taken, lost = reply
        return Rescued(int(returned), texts(taken), GivenUp.read(lost))


@dataclass(frozen=True, slots=True)
class Departure:
    """What has become of the tasks of a worker that leaves."""

    returned: int
    """How many were handed back or given up."""
    left: int
    """How many it still has, for the next call."""
    given_up: tuple[GivenUp, ...] = ()

    @staticmethod
    def read(reply: Any) -> Departure:
        """Read the reply of a script."""
        returned, left, lost = reply
        return Departure(int(returned), int(left), GivenUp.read(lost))


def join(
    keys: QueueKeys,
    settings: QueueSettings,
    worker: str,
    incarnation: str,
    description: Mapping[str, Any],
    *,
    comes_back: bool = False,
) -> Call[Rescued]:
    """Register a worker; *description* has its `abilities`, and when it began.

    What another incarnation of this name was running goes back to the queue. A worker
    that *comes back* leaves its name to one that began later and lives.
    """
    script = _script("join")
    return Call(
        script,
        script.keys(keys, running=keys.running(worker)),
        script.arguments(
            worker=worker,
            incarnation=incarnation,
            lease_ms=settings.lease_ms,
            description=json.dumps(description),
            release=_release_of(description),
            since=description.get("since", 0) if comes_back else 0,
            most_deaths=settings.deaths,
            exhausted=outcome_of_deaths(settings.deaths),
            unknown=outcome_unknown(),
        ),
        Rescued.read,
    )


def is_known(keys: QueueKeys, worker: str) -> RedisCommand[bool]:
    """Tell whether a worker of this name is a member, alive or not."""
    return RedisCommand(("HEXISTS", keys.members, worker), bool)


def _release_of(description: Mapping[str, Any]) -> str:
    """Tell workers that can run the same from others."""
    abilities = "\n".join(sorted(description.get("abilities", ())))
    return hashlib.sha256(abilities.encode(errors="replace")).hexdigest()[:16]


def exchange(
    keys: QueueKeys,
    settings: QueueSettings,
    worker: str,
    incarnation: str,
    *,
    want: int,
    keep: int,
    reports: Sequence[Report] = (),
    held: Sequence[str] | None = None,
    renews: bool = True,
    after: RedisCommand[Any] | None = None,
) -> Call[Exchanged | None]:
    """Report, renew the lease, take the next tasks; None if the lease was lost.

    Only an exchange that *renews* the lease looks whether upkeep is overdue. If there
    is a wait for a wake-up, *after*, the exchange takes place when that ends. *held*
    names the tasks that the worker holds, if a reply may have been lost.
    """
    flat: list[Argument] = [] if held is None else [outcome_unknown(), *held]
    number = len(flat) or -1
    flat += flat_reports(reports)
    script = _script("exchange")
    return Call(
        script,
        keys.of_worker(script, worker),
        script.arguments(
            worker=worker,
            incarnation=incarnation,
            lease_ms=settings.lease_ms,
            renews=int(renews),
            want=want,
            keep=keep,
            retention_ms=settings.retention_ms,
            most_outcomes=settings.outcomes,
            upkeep_ms=settings.upkeep_ms,
            held=number,
            held_and_reports=flat,
        ),
        partial(_exchanged, shard=keys.shard) if keys.shard else _exchanged,
        is_raw=True,
        after=after,
        replicas=settings.replicas if reports else 0,
    )


def flat_reports(reports: Sequence[Report]) -> list[Argument]:
    """Return reports as scripts take them, five arguments each."""
    flat: list[Argument] = []
    for report in reports:
        flat += (report.id, report.token, report.verdict, report.outcome)
        flat.append(report.delay_ms)
    return flat


def record_minute(
    keys: QueueKeys, minute: int, counts: Mapping[str, Sequence[int]]
) -> Call[bool]:
    """Add what ended on a worker to the numbers of a minute since 1970."""
    script = _script("record_minute")
    flat: list[str] = []
    for name, numbers in counts.items():
        flat += (name, " ".join(map(str, numbers)))
    return Call(
        script,
        script.keys(
            keys,
            ten_minutes=keys.ten_minutes(minute // 10),
            hundred_minutes=keys.hundred_minutes(minute // 100),
        ),
        script.arguments(
            minute=minute % 10,
            ten=minute // 10 % 10,
            minutes_kept_ms=MINUTES_KEPT * 60_000,
            tens_kept_ms=TENS_KEPT * 600_000,
            most=_MOST_NAMES,
            counts=flat,
        ),
        bool,
    )


def steal(
    keys: QueueKeys, victim: str, thief: str, *, most: int = 500, wake: bool = False
) -> Call[int]:
    """Move half of the victim's deque, from its back, to a thief that has nothing.

    Tasks that the thief cannot run stay.
    """
    script = _script("steal")
    return Call(
        script,
        script.keys(
            keys, victim_deque=keys.deque(victim), thief_deque=keys.deque(thief)
        ),
        script.arguments(victim=victim, thief=thief, most=most, wake=int(wake)),
        int,
    )


def choose_victim(drawn: Sequence[tuple[str, int]], thief: str) -> str | None:
    """Return the richer of the first two workers that are not the thief itself.

    Two choices are nearly as balanced as looking at all workers, at a constant cost.
    Redis has drawn them from those whose deque is not empty.
    """
    others = [(load, worker) for worker, load in drawn if worker != thief and load > 0]
    return max(others[:2])[1] if others else None


def begin(
    keys: QueueKeys, worker: str, task: Delivery, *, replicas: int = 0
) -> Call[bool]:
    """Record that a task that must not run twice has begun; False if it may not."""
    script = _script("begin")
    return Call(
        script,
        script.keys(keys, running=keys.running(worker)),
        script.arguments(id=task.id, holder=f"{worker}#{task.token}"),
        bool,
        replicas=replicas,
    )


def release(keys: QueueKeys, worker: str, tasks: Sequence[Delivery]) -> Call[int]:
    """Put tasks that were not begun back to the front of the worker's own deque."""
    script = _script("release")
    flat = [part for task in tasks for part in (task.id, task.token)]
    return Call(
        script,
        keys.of_worker(script, worker),
        script.arguments(worker=worker, tasks=flat),
        int,
    )


def find_capable(
    keys: QueueKeys, ability: str, *, but: str, most: int = _SAMPLE
) -> Call[str]:
    """Name a live worker with an ability, other than *but*; empty if none was found.

    It looks at a sample of the workers: where few of very many are capable, it may
    miss them.
    """
    script = _script("find_capable")
    return Call(
        script,
        script.keys(keys),
        script.arguments(
            ability=ability, written=json.dumps(ability), but=but, most=most
        ),
        text,
    )


def route(keys: QueueKeys, worker: str, task: Delivery, to: str) -> Call[bool]:
    """Move a task that *worker* took to the front of another worker's deque.

    False if the other worker is gone, or the task is no longer held.
    """
    script = _script("route")
    return Call(
        script,
        script.keys(keys, running=keys.running(worker), deque=keys.deque(to)),
        script.arguments(id=task.id, holder=f"{worker}#{task.token}", to=to),
        bool,
    )


def park(keys: QueueKeys, worker: str, task: Delivery, ability: str) -> Call[bool]:
    """Put a task aside until a worker joins that can run it."""
    script = _script("park")
    return Call(
        script,
        script.keys(
            keys, running=keys.running(worker), parked_for=keys.parked_for(ability)
        ),
        script.arguments(id=task.id, holder=f"{worker}#{task.token}", ability=ability),
        bool,
    )


def leave(
    keys: QueueKeys, worker: str, incarnation: str, *, most: int = 500, final: bool
) -> Call[Departure]:
    """Hand back the tasks of a worker.

    If not *final*, it hands back only the tasks in its deque, and stays. A task that
    was begun and must not run twice is given up.
    """
    script = _script("leave")
    return Call(
        script,
        keys.of_worker(script, worker),
        script.arguments(
            worker=worker,
            incarnation=incarnation,
            most=most,
            final=int(final),
            unknown=outcome_unknown(left=True),
        ),
        Departure.read,
    )


_NO_MORE = (0, 0, 0, -1, (), 0, ())


def _exchanged(reply: Any, shard: int = 0) -> Exchanged | None:
    if not isinstance(reply[0], int):
        return None
    now_ms, tasks, refused, cancelled, victims, unfinished, is_overdue, *more = reply
    (
        delayed,
        held_back,
        due_schedules,
        next_in_ms,
        pauses,
        limited,
        befell,
        *lost,
    ) = more or _NO_MORE
    return Exchanged(
        deliveries(tasks, shard, befell),
        texts(refused),
        texts(cancelled),
        deque_lengths(victims),
        unfinished,
        bool(is_overdue),
        delayed,
        held_back,
        due_schedules,
        next_in_ms,
        Pauses.read(pauses) if pauses else _NO_PAUSES,
        limited,
        now_ms,
        GivenUp.read(lost[0]) if lost else (),
    )
