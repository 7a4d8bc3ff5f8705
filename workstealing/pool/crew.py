"""The workers of a pool: giving them work, letting them come and go.

Everything here may be called by work that runs in the pool. It is shielded then: an
interruption waits until the pool's books are in order again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Lock, current_thread
from time import monotonic
from typing import Any, TypeVar

from workstealing.chance import Chance
from workstealing.clock import Clock
from workstealing.errors import PoolStopped, UnknownWorker
from workstealing.pool.buffer import Buffer
from workstealing.pool.deques import Deques
from workstealing.pool.forking import looked_after
from workstealing.pool.member import (
    Member,
    forget_member_here,
    member_here,
    works_of,
)
from workstealing.pool.resting import Resting
from workstealing.pool.scaling import Autoscale, Scaler
from workstealing.pool.watching import Watch
from workstealing.pool.work import Work

__all__ = ("Crew",)

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Few enough to be spread, many enough to be quick.
_IN_A_ROW = 16


class Crew:
    """Workers who share deques and a buffer."""

    def __init__(self, name: str, buffer: int, chance: Chance, clock: Clock) -> None:
        self.name = name
        self._chance = chance
        self._clock = clock
        self._begin_empty(buffer)
        looked_after(self)

    def _begin_empty(self, buffer: int) -> None:
        self.buffer = Buffer(self.name, buffer, self._clock)
        self.deques: Deques[Work[Any]] = Deques(chance=self._chance, in_a_row=_IN_A_ROW)
        self.least = 0
        """How many workers stay, however little there is to do."""
        self._lock = Lock()
        self._resizing = Lock()
        self._members: dict[int, Member] = {}
        self._leaving: dict[int, Member] = {}
        self._number = 0
        self.resting = Resting()
        self._quiet = Condition(Lock())
        self._waiting_for_quiet = 0
        self._scaler: Scaler | None = None
        self._watch: Watch | None = None

    def give(self, work: Work[Any], patience: float | None) -> None:
        """Take work in; see `Buffer.add` for what it raises.

        A worker that would wait for ever is not made to wait: all of them might.
        """
        me = member_here(self)
        if me is None:
            self.buffer.add(work, patience, is_bounded=True)
            self._place(work, self.resting.next_up)
        else:
            me.shielded(self._give_from_within, work, patience, me)

    def _give_from_within(
        self, work: Work[Any], patience: float | None, me: Member
    ) -> None:
        self.buffer.add(work, patience, is_bounded=patience is not None)
        self._place(work, None if me.is_leaving else me.number)

    def _place(self, work: Work[Any], number: int | None) -> None:
        try:
            if number is None:
                self.deques.spread(work)
            else:
                self.deques.push(number, work)
        except UnknownWorker:
            self.deques.spread(work)
        self.resting.ring()
        watch = self._watch
        if watch is not None:
            watch.nudge()

    def help(self, work: Work[Any]) -> None:
        """Run waiting work here and now, if the caller is a worker at work."""
        me = member_here(self)
        if me is not None and me.works:
            me.shielded(self._help, work, me)

    def _help(self, work: Work[Any], me: Member) -> None:
        me.works.append(work)
        if self.buffer.claim(work):
            self.deques.drop(work)
            me.run(work)
        else:
            me.works.pop()

    def withdraw(self, work: Work[Any]) -> bool:
        """Discard waiting work; False if it runs or is over."""
        return self.shielded(self._withdraw, work)

    def _withdraw(self, work: Work[Any]) -> bool:
        if not self.buffer.claim(work):
            return work.end_on_its_way()
        self.deques.drop(work)
        work.end_not_begun()
        self.tell_if_quiet()
        if self.buffer.is_closed:
            self.resting.ring_for_all()
        return True

    def hire(self, number: int) -> None:
        """Add workers."""
        for _ in range(number):
            with self._lock:
                if self.buffer.is_closed:
                    raise PoolStopped(f"{self.name} was stopped: make a new one")
                self._number += 1
                member = Member(self, self._number)
                self.deques.add(member.number)
                try:
                    member.thread.start()
                except RuntimeError:
                    self.deques.remove(member.number)
                    raise
                self._members[member.number] = member

    def resize(self, number: int) -> list[Member]:
        """Add or remove workers; return those who were sent away."""
        with self._resizing:
            self.least, me = number, member_here(self)
            self.hire(max(0, number - self.total))
            with self._lock:
                by_use = sorted(
                    self._members.values(), key=lambda one: (one is me, bool(one.works))
                )
            return [one for one in by_use if self._dismiss(one, least=number)]

    def _dismiss(self, member: Member, least: int = 0) -> bool:
        """Take a worker off the roster, if more than so many are on it.

        It finishes what it is at; what waits for it goes to others.
        """
        with self._lock:
            if len(self._members) <= least or member.number not in self._members:
                return False
            del self._members[member.number]
            self._leaving[member.number] = member
            member.is_leaving = True
            moved = self.deques.remove(member.number)
        self.resting.ring_for(member.bell)
        while moved and self.resting.ring():
            moved -= 1
        return True

    def dismiss_if_spare(self, member: Member) -> bool:
        """Let a worker go that has rested long enough, if it is not needed."""
        scaler, now = self._scaler, self._clock.monotonic()
        is_spare = scaler is not None and scaler.may_leave(now, self.total, self.least)
        return is_spare and self._dismiss(member, least=self.least)

    def say_goodbye(self, member: Member) -> None:
        """Forget a worker whose thread ends."""
        self._dismiss(member)
        with self._lock:
            self._leaving.pop(member.number, None)
        self.tell_if_quiet()
        if self.buffer.is_closed:
            self.close()

    def everyone(self) -> tuple[Member, ...]:
        """All whose threads may still live."""
        with self._lock:
            return (*self._members.values(), *self._leaving.values())

    @property
    def total(self) -> int:
        """How many workers there are, without those who leave."""
        return len(self._members)

    @property
    def idle_seconds(self) -> float | None:
        """How long a worker rests before it asks to leave; None: it need not ask."""
        scaler = self._scaler
        return scaler.rule.idle if scaler and self.total > self.least else None

    @property
    def autoscale(self) -> Autoscale | None:
        """How the number of workers is adapted."""
        scaler = self._scaler
        return None if scaler is None else scaler.rule

    @autoscale.setter
    def autoscale(self, rule: Autoscale | None) -> None:
        with self._lock:
            if self._watch is not None:
                self._watch.stop()
            self._scaler = None if rule is None else Scaler(rule)
            is_wanted = rule is not None and not self.buffer.is_closed
            self._watch = Watch(self._look, f"{self.name}-watch") if is_wanted else None
        # They rest as long as the old rule said.
        self.resting.ring_for_all()

    def _look(self) -> float | None:
        scaler, oldest_at = self._scaler, self.buffer.oldest_at()
        if scaler is None or oldest_at is None:
            return None
        now = self._clock.monotonic()
        try:
            self.hire(scaler.growth(now, oldest_at, self.total))
        except PoolStopped:
            return None
        except RuntimeError:
            logger.exception("%s could not start another worker", self.name)
        return scaler.look_again_in(now, oldest_at)

    def close(self) -> None:
        """Take no more work; workers leave when nothing waits."""
        self.buffer.close()
        with self._lock:
            if self._watch is not None:
                self._watch.stop()
        self.resting.ring_for_all()

    def abandon(self) -> None:
        """Close, for the pool is gone. The collector may call this at any point."""
        self.buffer.close_unlocked()
        self.resting.ring_unlocked()

    def join(self, seconds: float | None) -> bool:
        """Wait for the threads to end; not for the caller's own."""
        deadline = None if seconds is None else monotonic() + seconds
        threads = [one.thread for one in self.everyone()]
        for thread in threads:
            if thread is not current_thread():
                left = None if deadline is None else max(0.0, deadline - monotonic())
                thread.join(left)
        return not any(
            thread.is_alive() for thread in threads if thread is not current_thread()
        )

    def send_home(self) -> None:
        """Let each worker leave after what it is at, whatever waits."""
        for member in self.everyone():
            member.is_leaving = True
        self.resting.ring_for_all()

    def start_anew(self) -> None:
        """Be empty and stopped, in a forked child."""
        members = (*self._members.values(), *self._leaving.values())
        works = [*self.buffer.left_by_parent(), *works_of(members)]
        forget_member_here()
        self._begin_empty(self.buffer.limit)
        self.buffer.close()
        for work in works:
            work.end_in_child()

    def shielded(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call it; if this is work of ours, keep interruptions away meanwhile."""
        me = member_here(self)
        return function(*arguments) if me is None else me.shielded(function, *arguments)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        given = self.buffer.given
        return (
            not len(self.buffer)
            and self.deques.all_idle
            and (given == self.buffer.given)
        )

    def wait_until_quiet(self, seconds: float | None) -> bool:
        """Wait until nothing waits and nothing is in flight."""
        with self._quiet:
            self._waiting_for_quiet += 1
            try:
                return self._quiet.wait_for(lambda: self.is_quiet, seconds)
            finally:
                self._waiting_for_quiet -= 1

    def tell_if_quiet(self) -> None:
        """Tell those who wait for quiet to look again."""
        if self._waiting_for_quiet:
            with self._quiet:
                self._quiet.notify_all()
