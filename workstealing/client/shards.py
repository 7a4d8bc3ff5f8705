"""The shards of a queue, as one process knows them: how many, and what is where.

Each shard is a queue of its own in Redis, in a slot of its own. Their number is kept in
the first shard and only grows. A process with a smaller `shards=` learns the number
when it looks at the queue as a whole, when a worker joins, and every few seconds while
it submits; one with `shards=1` does not ask while it submits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, repeat

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.errors import RedisError
from workstealing.queue.keys import QueueKeys
from workstealing.queue.pause_calls import (
    Pauses,
    pause,
    read_pauses,
    resume_all,
)
from workstealing.queue.placement import (
    by_node,
    divided,
    grouped,
    shard_in_id,
    shard_of_id,
    shard_of_key,
    shard_of_turn,
)
from workstealing.queue.producer_calls import end_input, is_input_ended
from workstealing.queue.settings import QueueSettings
from workstealing.queue.shard_calls import (
    declare_shards,
    has_ids,
    has_unique_keys,
    read_shards,
)
from workstealing.queue.steps import Flow, Owners, ask

__all__ = ("Shards",)

logger = BackgroundLogger(__name__)

_ASK_SECONDS = 5.0
_AWAY_SECONDS = 30.0


class Shards:
    """The keys of all shards of one run of a queue.

    Args:
        name: of the queue.
        run: of the queue.
        wanted: how many shards there must be at least.
        settings: of the queue; each shard gets its part of `max_length`.
        clock: tells when to ask for the number again.
    """

    def __init__(
        self, name: str, run: str, wanted: int, settings: QueueSettings, clock: Clock
    ) -> None:
        self._name, self._run = name, run
        self._wanted = wanted
        self._whole = settings
        self._clock = clock
        self._asked_at = -math.inf
        # Apart: who looks once for each submission would skip every other node.
        self._looks, self._submissions = _from_anywhere(), _from_anywhere()
        self._before: tuple[int, ...] = ()
        self._has_told = False
        self.all: tuple[QueueKeys, ...] = ()
        """The keys of each shard that this process knows of."""
        self.settings = settings
        """The settings of each shard."""
        self.are_several = False
        """Whether there is more than one."""
        self._by_node: tuple[tuple[int, ...], ...] = (tuple(range(wanted)),)
        self._grow(wanted)

    def anew(self, clock: Clock) -> Shards:
        """Return the shards of the same queue on another server."""
        return Shards(self._name, self._run, self._wanted, self._whole, clock)

    def known(self, *, is_fresh: bool = False) -> Flow[tuple[QueueKeys, ...]]:
        """Return the keys of all shards, after asking how many there are."""
        now = self._clock.monotonic()
        if is_fresh or now - self._asked_at >= _ASK_SECONDS:
            try:
                yield from self._ask()
                self._asked_at = now
            except RedisError as error:
                # The node of the first shard may be down while others are up.
                if not self.are_several:
                    raise
                logger.debug("cannot tell how many shards there are: %r", error)
                # Each attempt may have to wait for a node that does not answer.
                self._asked_at = self._clock.monotonic() + _AWAY_SECONDS
        return self.all

    def find(self, task_id: str) -> Flow[QueueKeys]:
        """Return the keys of the shard that has a task, or would have it."""
        shard = shard_in_id(task_id)
        if shard is None and not self.are_several:
            return self.all[0]
        if shard is None or shard >= len(self.all):
            yield from self.known()
        if shard is not None and shard < len(self.all):
            return self.all[shard]
        home = shard_of_key(task_id, len(self.all))
        if not self.are_several:
            return self.all[home]
        # A shard key may have placed it elsewhere, or a smaller number of shards.
        for keys in (self.all[home], *self.all[:home], *self.all[home + 1 :]):
            (is_there,) = yield from has_ids(keys, [task_id])
            if is_there:
                return keys
        return self.all[home]

    def found(self, ids: Sequence[str]) -> Flow[list[tuple[QueueKeys, list[str]]]]:
        """Group tasks by the shard that has them."""
        if not self.are_several:
            return [(self.all[0], list(ids))]
        places: list[int] = []
        for task_id in ids:
            keys = yield from self.find(task_id)
            places.append(keys.shard)
        return [
            (self.all[shard], [ids[at] for at in positions])
            for shard, positions in grouped(places).items()
        ]

    def next_turn(self) -> int:
        """Return the shard to look at next: each in turn."""
        return next(self._looks) % len(self.all)

    def next_homes(self, tasks: int) -> list[int]:
        """Return the shards for tasks that may go anywhere: as many on each node."""
        nodes = self._by_node
        return [
            shard
            for size in divided(tasks, nodes)
            for shard in repeat(shard_of_turn(next(self._submissions), nodes), size)
        ]

    def of_key(self, key: str) -> int:
        """Return the shard of tasks with a shard key."""
        return shard_of_key(key, len(self.all))

    # Where to submit tasks that have an id or a unique key. One that was submitted when
    # there were fewer shards stays where it was; only then must Redis be asked.

    def homes_of_ids(self, ids: Sequence[str]) -> Flow[list[int]]:
        """Return the shards of tasks that have ids and nothing else."""
        now, *former = self._over_time(ids, shard_of_id)
        return self._homes(ids, has_ids, now, former)

    def homes_of_keyed(self, ids: Sequence[str], key: str) -> Flow[list[int]]:
        """Return the shards of tasks that have ids and a shard key."""
        number = len(ids)
        now, *former = (
            [one] * number for (one,) in self._over_time([key], shard_of_key)
        )
        for at, task_id in enumerate(ids):
            # `find` looks in the shard that an id names, so the task must be there.
            named = shard_in_id(task_id)
            if named is not None and named < len(self.all):
                now[at] = named
        return self._homes(ids, has_ids, now, former + self._own(ids))

    def homes_of_limited(self, ids: Sequence[str]) -> Flow[list[int]]:
        """Return the shards of tasks that have ids and limits."""
        return self._homes(ids, has_ids, [0] * len(ids), self._own(ids))

    def homes_of_unique_keys(
        self, unique: Sequence[str], ids: Sequence[str] | None
    ) -> Flow[list[int]]:
        """Return the shards of unique tasks, which may have ids of callers, too."""
        now, *former = self._over_time(unique, shard_of_key)
        homes = yield from self._homes(unique, has_unique_keys, now, former)
        if ids is not None:
            # When a task has ended its unique key is free, but its id is still known.
            homes = yield from self._homes(ids, has_ids, homes, former)
        return homes

    def _own(self, ids: Sequence[str]) -> list[list[int]]:
        """Return where ids without a key were put, now and by each former number."""
        return self._over_time(ids, shard_of_id) if self._before else []

    def _over_time(
        self, names: Sequence[str], place: Callable[[str, int], int]
    ) -> list[list[int]]:
        """Return where names are put now, and where by each former number of shards."""
        numbers = (len(self.all), *self._before)
        return [[place(name, number) for name in names] for number in numbers]

    def _homes(
        self,
        names: Sequence[str],
        has: Callable[[QueueKeys, Sequence[str]], Flow[list[bool]]],
        now: Sequence[int],
        former: Sequence[Sequence[int]],
    ) -> Flow[list[int]]:
        """Return the shard of each name: *now*, unless a *former* place has it."""
        homes, doubtful = list(now), set(range(len(names)))
        for places in former:
            for shard, positions in grouped(places).items():
                moved = [at for at in positions if at in doubtful and now[at] != shard]
                if not moved:
                    continue
                found = yield from has(self.all[shard], [names[at] for at in moved])
                for at, is_there in zip(moved, found, strict=True):
                    if is_there:
                        homes[at] = shard
                        doubtful.remove(at)
        return homes

    def _ask(self) -> Flow[None]:
        first = self.all[0]
        numbers = yield from ask(read_shards(first))
        if self._wanted > numbers[-1]:
            yield from self._prepare(numbers[-1])
            numbers = yield from ask(declare_shards(first, self._wanted))
        *before, number = numbers
        if number > self._wanted > 1 and not self._has_told:
            self._has_told = True
            logger.info(
                "queue %s/%s has %d shards already, so shards=%d has no effect here",
                self._name,
                self._run,
                number,
                self._wanted,
            )
        self._before = tuple(before)
        self._grow(number)
        if self._whole.max_length:
            # Each shard takes its part of that, so all must fill up together.
            self._by_node = (tuple(range(len(self.all))),)
        elif self.are_several:
            owners = yield Owners(tuple(keys.control for keys in self.all))
            self._by_node = by_node(Owners.parse(owners))

    def _prepare(self, number: int) -> Flow[None]:
        """Pause and close new shards as the first one is, before they are declared."""
        first = self.all[0]
        paused = _names_in((yield from ask(read_pauses(first))))
        is_ended = yield from ask(is_input_ended(first))
        for shard in range(number, self._wanted):
            keys = self.all[shard]
            # Another process may have prepared it, and failed before it was declared.
            former = _names_in((yield from ask(read_pauses(keys))))
            for name in former:
                if name not in paused:
                    yield from resume_all(keys, name)
            for name in paused:
                if name not in former:
                    yield from ask(pause(keys, name))
            yield from ask(end_input(keys, ended=is_ended))

    def _grow(self, number: int) -> None:
        # From one reading of `all`: another thread may do the same meanwhile.
        known = self.all
        shards = range(len(known), number)
        self.all = known + tuple(
            QueueKeys(self._name, self._run, one) for one in shards
        )
        self.are_several = len(self.all) > 1
        most = self._whole.max_length
        if most:
            part = math.ceil(most / len(self.all))
            self.settings = replace(self._whole, max_length=part)


def _from_anywhere() -> Iterator[int]:
    return count(int.from_bytes(os.urandom(2), "big"))


def _names_in(pauses: Pauses) -> list[str | None]:
    """Return what is paused: names of tasks, and None for all of the queue."""
    names: list[str | None] = [*pauses.tasks]
    return names if pauses.queue_since_ms is None else [None, *names]
