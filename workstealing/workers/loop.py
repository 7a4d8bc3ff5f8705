"""One worker's life as a flow: own deque, inbox, steal, upkeep, rest.

It does no I/O: it yields what it wants from Redis, and when its tasks are to be run.
A failure of Redis enters as an exception; the worker then doubts what it holds, waits a
little, and goes on, for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from workstealing.chance import Chance
from workstealing.errors import RedisError, ServerTooOld
from workstealing.queue import presence
from workstealing.queue.call import Command, Consult, Flow, Nap, ask
from workstealing.queue.consuming import Exchanged, exchange, park, release, steal
from workstealing.queue.maintaining import unpark
from workstealing.workers.batching import Batching
from workstealing.workers.executing import Unable
from workstealing.workers.hands import Hands
from workstealing.workers.member import Member
from workstealing.workers.stealing import choose_victim
from workstealing.workers.upkeep import upkeep

__all__ = ("Life", "LifeStats")

logger = logging.getLogger(__name__)

_HURRIED_REST = 0.1
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_REPORT_EVERY = 600


@dataclass(slots=True)
class LifeStats:
    """What a worker counted since it began."""

    exchanges: int = 0
    taken: int = 0
    stolen: int = 0
    refused: int = 0
    lost_leases: int = 0
    failures: int = 0
    """Exchanges that Redis did not answer."""


class Life:
    """The life of one worker, from joining to leaving.

    Args:
        member: who it is.
        hands: what it holds.
        batching: how much it takes.
        work: works through the hands; returns what it could not run.
        idle: what to do with a moment before a rest.
        is_stopping: whether to come to an end.
        renewed: is told that an exchange renewed the lease.
        until_empty: end when nothing is left in the queue.
        rest: seconds to wait for work before it looks again.
        chance: jitter for pauses.
    """

    def __init__(
        self,
        member: Member,
        hands: Hands,
        batching: Batching,
        *,
        work: Callable[[], list[Unable]],
        idle: Callable[[], object],
        is_stopping: Callable[[], bool],
        renewed: Callable[[], None],
        until_empty: bool,
        rest: float,
        chance: Chance,
    ) -> None:
        self._member = member
        self._hands = hands
        self._batching = batching
        self._work = work
        self._idle = idle
        self._is_stopping = is_stopping
        self._renewed = renewed
        self._until_empty = until_empty
        self._rest_seconds = min(rest, _HURRIED_REST) if until_empty else rest
        self._chance = chance
        self._is_over = False
        self._failures_in_a_row = 0
        self.stats = LifeStats()

    def live(self) -> Flow[None]:
        """Join, work until the end, hand back, leave."""
        is_member = False
        while not (self._is_over or self._is_stopping()):
            try:
                if not is_member:
                    yield from self._join()
                    is_member = True
                is_member = yield from self._turn()
                self._failures_in_a_row = 0
            except ServerTooOld:
                raise
            except RedisError as error:
                yield from self._doubt(error)
        if is_member:
            yield from self.leave()

    def leave(self) -> Flow[None]:
        """Report what is finished, hand back the rest; never at any price."""
        member, hands = self._member, self._hands
        try:
            put_down = hands.put_down()
            if put_down:
                yield from ask(release(member.keys, member.name, put_down))
            yield from self._exchange(0)
            left = 1
            while left:
                _, left = yield from ask(
                    presence.leave(
                        member.keys, member.name, member.incarnation, final=True
                    )
                )
        except RedisError as error:
            logger.warning(
                "worker %s could not hand back; others will, when its lease ends: %s",
                member.name,
                error,
            )

    def _join(self) -> Flow[None]:
        member = self._member
        yield from ask(
            presence.join(
                member.keys,
                member.settings,
                member.name,
                member.incarnation,
                member.description,
            )
        )
        abilities = member.description["abilities"]
        assert isinstance(abilities, list)
        for ability in abilities:
            while (yield from ask(unpark(member.keys, ability, most=500))) >= 500:
                pass

    def _turn(self) -> Flow[bool]:
        """Exchange once and do what comes of it; False if struck off meanwhile."""
        exchanged = yield from self._exchange(self._batching.want)
        if exchanged is None:
            return False
        worked = self._hands.waiting > 0
        if worked:
            unable: list[Unable] = yield Consult(self._work, ())
            for one in unable:
                yield from self._park(one)
        elif (yield from self._steal(exchanged)) > 0:
            worked = True
        if exchanged.is_overdue:
            member = self._member
            yield from upkeep(member.keys, member.settings, "worker")
        if not worked:
            yield from self._rest(exchanged)
        return True

    def _exchange(self, want: int) -> Flow[Exchanged | None]:
        member, hands, stats = self._member, self._hands, self.stats
        reports = hands.take_reports()
        stats.exchanges += 1
        call = exchange(
            member.keys,
            member.settings,
            member.name,
            member.incarnation,
            want=max(0, want - hands.waiting),
            keep=self._batching.keep,
            reports=reports,
            known=hands.known(),
        )
        try:
            exchanged = yield from ask(call)
        except BaseException:
            # Whether Redis has them is not known. A worker that is interrupted here
            # leaves with them.
            hands.keep_reports(reports)
            hands.is_unsure = True
            raise
        if exchanged is None:
            stats.lost_leases += 1
            logger.warning("worker %s was taken for dead; it joins anew", member.name)
            hands.drop_all()
            return None
        if exchanged.refused:
            stats.refused += len(exchanged.refused)
            logger.warning("too late, another has them: %s", exchanged.refused)
        self._renewed()
        hands.cancelled = set(exchanged.cancelled)
        stats.taken += len(exchanged.tasks)
        hands.take(exchanged.tasks)
        return exchanged

    def _park(self, unable: Unable) -> Flow[None]:
        member = self._member
        logger.warning("task %s needs %s; parked", unable.task.id, unable.ability)
        yield from ask(park(member.keys, member.name, unable.task, unable.ability))

    def _steal(self, exchanged: Exchanged) -> Flow[int]:
        victim = choose_victim(exchanged.victims, self._member.name)
        if victim is None:
            return 0
        moved = yield from ask(steal(self._member.keys, victim, self._member.name))
        self.stats.stolen += moved
        return moved

    def _rest(self, exchanged: Exchanged) -> Flow[None]:
        if self._until_empty and exchanged.unfinished <= 0:
            self._is_over = True
            return
        yield Consult(self._idle, ())
        bell = ("BLPOP", self._member.keys.bell, self._rest_seconds)
        yield from ask(Command(bell, parse=bool))

    def _doubt(self, error: RedisError) -> Flow[None]:
        self._hands.is_unsure = True
        self.stats.failures += 1
        if self._failures_in_a_row % _REPORT_EVERY == 0:
            logger.warning("worker %s has no Redis: %s", self._member.name, error)
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**self._failures_in_a_row)
        self._failures_in_a_row = min(self._failures_in_a_row + 1, 10)
        yield Nap(longest * (0.5 + 0.5 * self._chance.random()))
