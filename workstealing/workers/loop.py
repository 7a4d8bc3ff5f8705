"""One worker's life as a flow: own deque, inbox, steal, upkeep, rest.

It does no I/O: it yields what it wants from Redis, and when its tasks are to be run.
A failure of Redis enters as an exception; the worker then doubts what it holds, waits a
little, and goes on, for ever.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from workstealing.chance import Chance
from workstealing.clock import Clock
from workstealing.errors import RedisError, ServerTooOld
from workstealing.queue import presence
from workstealing.queue.call import Consult, Flow, Nap, Step, ask
from workstealing.queue.consuming import Exchanged, exchange, release, steal
from workstealing.queue.maintaining import unpark
from workstealing.tasks.attempt import Report, Taken, Unable
from workstealing.workers.handing import hand_over
from workstealing.workers.lifecycle import HAND_BACK_SECONDS, Phase
from workstealing.workers.member import Member
from workstealing.workers.stealing import choose_victim
from workstealing.workers.upkeep import upkeep

__all__ = ("Crew", "Life", "LifeStats")

logger = logging.getLogger(__name__)

_HURRIED_REST = 0.1
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_TELL_SECONDS = 60.0


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
    due: int = 0
    """Tasks in the queue that wanted to be run by then, at the last exchange."""


class Crew(Protocol):
    """Those who do the work of a worker, and what they hold.

    A life tells Redis and the crew about each other. One thread leads the life; what it
    asks of the crew must be safe while the crew works.
    """

    def room(self) -> int:
        """How many more tasks it would take now."""
        ...

    def keep(self) -> int:
        """How many to have in the deque, where thieves reach them."""
        ...

    def take(self, exchanged: Exchanged) -> None:
        """Hold more tasks, and hear which of those that it holds are cancelled."""
        ...

    def known(self) -> Sequence[str] | None:
        """What to name in an exchange as held; None if that is not worth it."""
        ...

    def doubt(self) -> None:
        """A reply was lost: Redis may think that it holds more."""
        ...

    def take_reports(self) -> Sequence[Report]:
        """Take out what is to be delivered."""
        ...

    def keep_reports(self, reports: Sequence[Report]) -> None:
        """Hold reports whose delivery is in doubt."""
        ...

    def delivered(self, reports: Sequence[Report]) -> None:
        """Forget what Redis was told."""
        ...

    def put_down(self) -> Sequence[Taken]:
        """Let go of what is not begun and out of reach for longer than it should."""
        ...

    def put_all_down(self) -> Sequence[Taken]:
        """Let go of all that is not begun."""
        ...

    def drop_all(self) -> None:
        """Let go of everything: it is another's by now."""
        ...

    def is_busy(self) -> bool:
        """Whether it has anything to run, or runs it."""
        ...

    def work(self) -> Sequence[Unable]:
        """Run what it holds, or wait a while for it to be run; tell what it cannot."""
        ...

    def rest(self, seconds: float) -> Step:
        """Return the step that waits for the bell, if there is nothing to do."""
        ...


class Life:
    """The life of one worker, from joining to leaving.

    Args:
        member: who it is.
        crew: who does the work.
        idle: what to do with a moment before a rest.
        phase: how far along it is; after working it comes to an end.
        renewed: is told that an exchange renewed the lease.
        until_empty: end when nothing is left in the queue.
        rest: seconds to wait for work before it looks again.
        chance: jitter for pauses.
        clock: how long Redis has been away.
    """

    def __init__(
        self,
        member: Member,
        crew: Crew,
        *,
        idle: Callable[[], object],
        phase: Callable[[], Phase],
        renewed: Callable[[], None],
        until_empty: bool,
        rest: float,
        chance: Chance,
        clock: Clock,
    ) -> None:
        self._member = member
        self._crew = crew
        self._idle = idle
        self._phase = phase
        self._renewed = renewed
        self._until_empty = until_empty
        self._rest_seconds = min(rest, _HURRIED_REST) if until_empty else rest
        self._chance = chance
        self._clock = clock
        self._is_over = False
        self._failures_in_a_row = 0
        self._told_at: float | None = None
        self._hand_back_at = -math.inf
        self.stats = LifeStats()

    def live(self) -> Flow[None]:
        """Join, work until the end, hand back, leave."""
        is_member = False
        while not (self._is_over or self._is_to_end()):
            try:
                if not is_member:
                    yield from self._join()
                    is_member = True
                if self._is_hand_back_due():
                    yield from self._hand_back(final=False)
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
        try:
            yield from self._exchange(0)
            yield from self._hand_back(final=True)
        except RedisError as error:
            logger.warning(
                "worker %s could not hand back; others will, when its lease ends: %s",
                self._member.name,
                error,
            )

    def _is_to_end(self) -> bool:
        phase = self._phase()
        if phase is Phase.STOPPING:
            return not self._crew.is_busy()
        return phase is Phase.ENDING

    def _is_hand_back_due(self) -> bool:
        now = self._clock.monotonic()
        if self._phase() < Phase.QUIET or now < self._hand_back_at:
            return False
        self._hand_back_at = now + HAND_BACK_SECONDS
        return True

    def _hand_back(self, *, final: bool) -> Flow[None]:
        member = self._member
        yield from self._release(self._crew.put_all_down())
        left = 1
        while left:
            _, left = yield from ask(
                presence.leave(
                    member.keys, member.name, member.incarnation, final=final
                )
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
        crew = self._crew
        want = crew.room() if self._phase() is Phase.WORKING else 0
        exchanged = yield from self._exchange(want)
        if exchanged is None:
            return False
        worked = (yield from self._steal(exchanged)) > 0
        if not worked and crew.is_busy():
            worked = True
            unable: Sequence[Unable] = yield Consult(crew.work, ())
            # Each goes to the front of a deque: the first of them comes last.
            for one in reversed(unable):
                yield from hand_over(self._member, one)
            yield from self._release(crew.put_down())
        if exchanged.is_overdue:
            member = self._member
            yield from upkeep(member.keys, member.settings, "worker")
        if not worked:
            yield from self._rest(exchanged)
        return True

    def _exchange(self, want: int) -> Flow[Exchanged | None]:
        member, crew, stats = self._member, self._crew, self.stats
        reports = crew.take_reports()
        stats.exchanges += 1
        call = exchange(
            member.keys,
            member.settings,
            member.name,
            member.incarnation,
            want=want,
            keep=crew.keep(),
            reports=reports,
            known=crew.known(),
        )
        try:
            exchanged = yield from ask(call)
        except BaseException:
            # Whether Redis has them is not known. A worker that is interrupted here
            # leaves with them.
            crew.keep_reports(reports)
            crew.doubt()
            raise
        crew.delivered(reports)
        if exchanged is None:
            stats.lost_leases += 1
            logger.warning("worker %s was taken for dead; it joins anew", member.name)
            crew.drop_all()
            return None
        if exchanged.refused:
            stats.refused += len(exchanged.refused)
            logger.warning("too late, another has them: %s", exchanged.refused)
        self._renewed()
        stats.taken += len(exchanged.tasks)
        stats.due = exchanged.unfinished - exchanged.delayed
        crew.take(exchanged)
        return exchanged

    def _release(self, tasks: Sequence[Taken]) -> Flow[None]:
        if tasks:
            member = self._member
            yield from ask(release(member.keys, member.name, tasks))

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
        yield self._crew.rest(self._rest_seconds)

    def _doubt(self, error: RedisError) -> Flow[None]:
        self._crew.doubt()
        self.stats.failures += 1
        now = self._clock.monotonic()
        if self._told_at is None or now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            logger.warning("worker %s has no Redis: %s", self._member.name, error)
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**self._failures_in_a_row)
        self._failures_in_a_row = min(self._failures_in_a_row + 1, 10)
        yield Nap(longest * (0.5 + 0.5 * self._chance.random()))
