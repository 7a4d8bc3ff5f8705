"""When a worker goes from one shard of its queue to another.

A worker is a member of one shard at a time, so it needs no more connections and waits
than without shards. It has a home, the shard with the fewest members when it starts.
Once a second it looks at a few others: at those without a member, and at two more. If
it runs out of tasks while others had some at its last look, it looks at once.

- A shard that has tasks and no member is served first, even by a busy worker; of
  several workers in one shard, about one goes. The same holds for a shard with parked
  tasks that this worker can run, since its members cannot.
- A worker that finds nothing goes where most tasks wait for each member. If there are
  no tasks anywhere, it goes home.
- A shard without any member becomes the home of one of several workers that rest.
- Workers that look at a shard without members do its upkeep, and fire its schedules.
  All schedules are in the first shard: if that has no members, a worker looks when the
  next tick is due.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from zlib import crc32

from workstealing._logs import BackgroundLogger
from workstealing.chance import Chance
from workstealing.client.queue_schedules import QueueSchedules
from workstealing.clock import Clock
from workstealing.errors import RedisError
from workstealing.queue.inspection_calls import Counts, counts
from workstealing.queue.merged_counts import ended_since, merged_counts
from workstealing.queue.shard_calls import ShardStatus, shard_status
from workstealing.queue.steps import Flow, ask
from workstealing.telemetry.task_observers import TaskObservers
from workstealing.workers.identity import WorkerIdentity
from workstealing.workers.upkeep import upkeep

__all__ = ("ShardRounds", "choose_home", "choose_shard")

logger = BackgroundLogger(__name__)

# The shard that has all schedules.
_FIRST = 0
_LOOK_SECONDS = 1.0
# Between two looks, if the worker has run out of tasks and others have some; and the
# shortest time between any two.
_HURRIED_LOOK_SECONDS = 0.02
# How long to leave a shard alone that cannot be reached: many times as long as it took
# to find out, so that this takes little time from tasks; at first not for long.
_LEAST_AWAY_SECONDS = 2.0
_AWAY_SECONDS = 10.0
_MOST_DOUBLINGS = 4
_AWAY_FACTOR = 20.0
# If it took longer, others that may be on the same node are not looked at.
_QUICK_SECONDS = 0.05
_FRUITLESS_SECONDS = 5.0
# For how long a shard is looked at that had parked tasks which this worker can run.
_NEEDED_SECONDS = 60.0
# Of the others, how many are looked at: two choices are nearly as good as all.
_SAMPLE = 2


class ShardRounds:
    """What one worker knows of the shards that it is not in.

    Args:
        identity: which worker, and where it is.
        schedules: those of the queue, for upkeep.
        chance: which shards to look at, and who goes.
        clock: when it looked last.
        observers: are told what upkeep does.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        schedules: QueueSchedules,
        chance: Chance,
        clock: Clock,
        observers: TaskObservers | None,
    ) -> None:
        self._identity = identity
        self._schedules = schedules
        self._chance = chance
        self._clock = clock
        self._observers = observers
        self._home = 0
        self._looked_at = -math.inf
        self._others_have_tasks = False
        self._deserted: frozenset[int] = frozenset()
        self._next_tick_at = math.inf
        self._parked: dict[int, tuple[str, ...]] = {}
        self._needed_until: dict[int, float] = {}
        self._unseen: set[int] = set()
        self._not_before: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._counted: Counts | None = None
        self._number = 1
        self._is_content = self._has_worked = False

    @property
    def is_due(self) -> bool:
        """Whether it is time to look at others, though there is something to do."""
        return self.seconds_to_look(is_idle=False) <= 0

    @property
    def is_due_if_idle(self) -> bool:
        """Whether it is time to look at others, with nothing to do."""
        return self.seconds_to_look(is_idle=True) <= 0

    @property
    def rest_seconds(self) -> float:
        """How long a worker may rest that found nothing."""
        if self._is_content and not self._deserted:
            return math.inf
        return max(0.001, self.seconds_to_look(is_idle=True))

    def seconds_to_look(self, *, is_idle: bool) -> float:
        """Return how long it is until it should look at others."""
        has_hurry = is_idle and self._others_have_tasks
        pause = _HURRIED_LOOK_SECONDS if has_hurry else _LOOK_SECONDS
        look_at = self._looked_at + pause
        if _FIRST in self._deserted:
            soonest = self._looked_at + _HURRIED_LOOK_SECONDS
            look_at = max(soonest, min(look_at, self._next_tick_at))
        return look_at - self._clock.monotonic()

    def note_work(self) -> None:
        """Look at others again when there is nothing more to do here."""
        self._is_content = False
        self._has_worked = True

    def settle(self) -> Flow[int]:
        """Choose a home, where the fewest workers are."""
        shards = yield from self._identity.shards.known()
        if len(shards) > 1:
            pool, _, index = self._identity.name.rpartition(".")
            first = (crc32(pool.encode()) + int(index)) % len(shards)
            seen = yield from self._statuses(range(len(shards)))
            self._home = choose_home(seen, first, len(shards))
            self._note(seen, len(shards))
        return self._home

    def look(self, *, is_idle: bool, looks_at_all: bool = False) -> Flow[int | None]:
        """Look at other shards; return the one to go to, if it is worth it."""
        number = len((yield from self._identity.shards.known()))
        if number > self._number:
            self._unseen.update(range(self._number, number))
        here = self._identity.keys.shard
        self._looked_at = self._clock.monotonic()
        wanted = set(range(number))
        if not looks_at_all:
            others = [one for one in wanted if one != here]
            drawn = (self._chance.random() for _ in range(_SAMPLE))
            some = {others[int(one * len(others))] for one in drawn}
            wanted = {here, self._home} | self._deserted | self._unseen | some
        seen = yield from self._statuses(sorted(wanted))
        self._note(seen, number)
        if is_idle and here != self._home and not self._has_worked:
            # If tasks wait here, this worker could not take them.
            self._not_before[here] = self._clock.monotonic() + _FRUITLESS_SECONDS
        going = choose_shard(
            seen, here, self._home, is_idle=is_idle, draw=self._chance.random()
        )
        if going is not None and is_idle and not seen[going].waiting:
            self._home = going
        if going is not None and here in seen and seen[here].members <= 1:
            # Nobody is left there.
            self._deserted |= {here}
        self._is_content = is_idle and going is None
        self._has_worked = self._has_worked and going is None
        return going

    def parked_in(self, shard: int) -> tuple[str, ...]:
        """Return for what of its abilities tasks were parked at the last look."""
        return self._parked.get(shard, ())

    def are_empty(self, *, is_all: bool) -> Flow[bool]:
        """Tell whether no shard has anything left, at one moment at least."""
        parts: list[Counts] = []
        for keys in self._identity.shards.all:
            part = yield from ask(counts(keys))
            parts.append(part)
        seen, before = merged_counts(parts), self._counted
        left = seen.unfinished if is_all else seen.runnable
        self._counted = seen if left <= 0 else None
        return left <= 0 and not ended_since(before, seen)

    def escape(self) -> Flow[int | None]:
        """Return another shard that can be reached, if the one that it is in cannot."""
        here = self._identity.keys.shard
        self._not_before[here] = self._clock.monotonic() + _LEAST_AWAY_SECONDS
        number = len(self._identity.shards.all)
        start = int(self._chance.random() * number)
        for turn in range(number):
            seen = yield from self._statuses([(start + turn) % number])
            for shard in seen:
                return shard
        return None

    def _statuses(self, shards: range | list[int]) -> Flow[dict[int, ShardStatus]]:
        identity, found = self._identity, dict[int, ShardStatus]()
        for shard in shards:
            if self._clock.monotonic() < self._not_before.get(shard, -math.inf):
                continue
            keys = identity.shards.all[shard]
            began_at = self._clock.monotonic()
            try:
                seen = yield from ask(shard_status(keys, identity.settings))
                if seen.is_overdue and not seen.members:
                    yield from upkeep(
                        keys,
                        identity.settings,
                        "worker",
                        self._schedules,
                        self._observers,
                    )
                    seen = yield from ask(shard_status(keys, identity.settings))
                if seen.due_ticks:
                    # Its members may be busy, or dead and not known to be.
                    yield from self._schedules.fire_due()
                    seen = yield from ask(shard_status(keys, identity.settings))
            except RedisError as error:
                took = self._clock.monotonic() - began_at
                self._leave_alone(shard, took, error)
                if took > _QUICK_SECONDS:
                    break
                continue
            found[shard] = self._for_it(seen)
            if self._failures.pop(shard, 0):
                logger.info("worker %s reaches shard %d again", identity.name, shard)
        return found

    def _leave_alone(self, shard: int, took: float, error: RedisError) -> None:
        """Look at a shard less and less often while its node is away."""
        failures = self._failures[shard] = self._failures.get(shard, 0) + 1
        longest = _AWAY_SECONDS * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        away = max(_LEAST_AWAY_SECONDS, min(_AWAY_FACTOR * took, longest))
        self._not_before[shard] = self._clock.monotonic() + away
        if failures == 1:
            logger.warning(
                "worker %s cannot reach shard %d, whose tasks wait: %s",
                self._identity.name,
                shard,
                error,
            )

    def _for_it(self, seen: ShardStatus) -> ShardStatus:
        """Count the parked tasks that this worker can run as waiting."""
        if not seen.parked:
            return seen
        known = frozenset(self._identity.abilities)
        parked = tuple(one for one in seen.parked if one in known)
        return replace(seen, parked=parked, waiting=seen.waiting + len(parked))

    def _note(self, seen: Mapping[int, ShardStatus], number: int) -> None:
        self._number = number
        here = self._identity.keys.shard
        self._others_have_tasks = any(
            one.waiting for shard, one in seen.items() if shard != here
        )
        self._unseen.difference_update(seen)
        now = self._clock.monotonic()
        # If its node is away, it is not looked at, so there is no hurry either.
        next_in = seen[_FIRST].next_tick_ms if _FIRST in seen else -1
        self._next_tick_at = math.inf if next_in < 0 else now + next_in / 1000
        for shard, one in seen.items():
            self._parked[shard] = one.parked
            if one.parked:
                self._needed_until[shard] = now + _NEEDED_SECONDS
        empty = {
            shard
            for shard, one in seen.items()
            if not one.members or self._needed_until.get(shard, now) > now
        }
        self._deserted = (self._deserted - seen.keys()) | empty


def choose_home(seen: Mapping[int, ShardStatus], first: int, shards: int) -> int:
    """Return the shard with the fewest members; of equals, the next after the first.

    Workers that start together see the same numbers, and begin at different shards.
    """
    return min(
        seen,
        key=lambda one: (seen[one].members, (one - first) % shards),
        default=first,
    )


def choose_shard(
    seen: Mapping[int, ShardStatus], here: int, home: int, *, is_idle: bool, draw: float
) -> int | None:
    """Return the shard to go to; None: stay.

    Args:
        seen: shards that were looked at just now; maybe the one that it is in, too.
        here: the shard that the worker is in.
        home: the shard to which it goes when there are no tasks.
        is_idle: whether there is nothing to do where it is.
        draw: between 0 and 1, drawn so that not all workers go to one shard at once.
    """
    others = {shard: one for shard, one in seen.items() if shard != here}
    waiting = {shard: one for shard, one in others.items() if one.waiting}
    members = max(1, seen[here].members if here in seen else 1)
    # Or its members cannot run the tasks that are parked there.
    deserted = [
        shard for shard, one in waiting.items() if one.parked or not one.members
    ]
    if deserted and (is_idle or draw < 1 / members):
        return max(deserted, key=lambda one: waiting[one].waiting)
    if not is_idle:
        return None
    if waiting:
        return max(waiting, key=lambda one: waiting[one].waiting / waiting[one].members)
    empty = [shard for shard, one in others.items() if not one.members]
    if empty and members > 1 and draw < 1 / members:
        return empty[int(draw * members * len(empty))]
    return home if home in others else None
