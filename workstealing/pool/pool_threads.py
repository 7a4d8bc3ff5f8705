"""The worker threads of a pool: they get work, are added, and leave.

Everything here may be called by work that runs in the pool. It is shielded then: an
interruption waits until the pool's state is consistent again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Lock, current_thread
from time import monotonic
from typing import Any, TypeVar

from workstealing._forking import end_at_exit, reset_in_children
from workstealing._printing import escaping_logger
from workstealing.chance import Chance
from workstealing.clock import Clock
from workstealing.errors import PoolStopped, UnknownWorker
from workstealing.pool.autoscale import Autoscale, ScalingThread, WaitScaler
from workstealing.pool.pool_thread import (
    PoolThread,
    Sleepers,
    forget_current_thread,
    pool_thread_here,
    running_work,
)
from workstealing.pool.waiting_work import WaitingWork
from workstealing.pool.work import Work
from workstealing.pool.work_deques import WorkDeques

__all__ = ("PoolThreads",)

logger = escaping_logger(__name__)

T = TypeVar("T")

# Few enough to be spread, many enough to be quick.
_IN_A_ROW = 16


class PoolThreads:
    """Threads that share waiting work and deques."""

    def __init__(
        self,
        name: str,
        buffer: int,
        initializer: Callable[[], object] | None,
        chance: Chance,
        clock: Clock,
    ) -> None:
        self.name = name
        self.initializer = initializer
        self._chance = chance
        self._clock = clock
        self._begin_empty(buffer)
        end_at_exit(self)
        reset_in_children(self, PoolThreads._reset_after_fork)

    def _begin_empty(self, buffer: int) -> None:
        self.waiting = WaitingWork(self.name, buffer, self._clock)
        self.deques: WorkDeques[Work[Any]] = WorkDeques(
            chance=self._chance, in_a_row=_IN_A_ROW
        )
        self.sleepers = Sleepers()
        self.least = 0
        """How many threads stay, however little there is to do."""
        self._lock = Lock()
        self._resizing = Lock()
        self._threads: dict[int, PoolThread] = {}
        self._leaving: dict[int, PoolThread] = {}
        self._started = 0
        self._idle = Condition(Lock())
        self._waiting_for_idle = 0
        self._scaler: WaitScaler | None = None
        self._scaling: ScalingThread | None = None

    def submit(self, work: Work[Any], timeout: float | None) -> None:
        """Accept work; see `WaitingWork.add` for what it raises.

        A worker that submits without a timeout is not made to wait for room: if all
        workers did, nobody would make room.
        """
        me = pool_thread_here(self)
        if me is None:
            self.waiting.add(work, timeout, is_bounded=True)
            self._place(work, self.sleepers.next_up)
        else:
            me.shielded(self._submit_from_within, work, timeout, me)

    def _submit_from_within(
        self, work: Work[Any], timeout: float | None, me: PoolThread
    ) -> None:
        self.waiting.add(work, timeout, is_bounded=timeout is not None)
        self._place(work, None if me.is_leaving else me.number)

    def _place(self, work: Work[Any], number: int | None) -> None:
        try:
            if number is None:
                self.deques.spread(work)
            else:
                self.deques.push(number, work)
        except UnknownWorker:
            self.deques.spread(work)
        self.sleepers.wake_one()
        scaling = self._scaling
        if scaling is not None:
            scaling.wake()

    def help(self, work: Work[Any]) -> None:
        """Run waiting work here and now, if the caller is work of this pool."""
        me = pool_thread_here(self)
        if me is not None and me.works:
            me.shielded(self._help, work, me)

    def _help(self, work: Work[Any], me: PoolThread) -> None:
        me.works.append(work)
        if self.waiting.claim(work):
            self.deques.drop(work)
            me.run(work)
        else:
            me.works.pop()

    def withdraw(self, work: Work[Any]) -> bool:
        """Discard waiting work; False if it runs or is over."""
        return self.shielded(self._withdraw, work)

    def _withdraw(self, work: Work[Any]) -> bool:
        if not self.waiting.claim(work):
            return work.end_claimed()
        self.deques.drop(work)
        work.end_not_begun()
        self.notify_if_idle()
        if self.waiting.is_closed:
            self.sleepers.wake_all()
        return True

    def add(self, number: int) -> None:
        """Start more threads."""
        for _ in range(number):
            with self._lock:
                if self.waiting.is_closed:
                    raise PoolStopped(f"{self.name} was stopped: make a new pool")
                self._started += 1
                thread = PoolThread(self, self._started)
                self.deques.add(thread.number)
                try:
                    thread.thread.start()
                except RuntimeError:
                    self.deques.remove(thread.number)
                    raise
                self._threads[thread.number] = thread

    def resize(self, number: int) -> list[PoolThread]:
        """Change the number of threads; return those that leave."""
        with self._resizing:
            self.least, me = number, pool_thread_here(self)
            self.add(max(0, number - self.total))
            with self._lock:
                idle_first = sorted(
                    self._threads.values(),
                    key=lambda thread: (thread is me, bool(thread.works)),
                )
            return [one for one in idle_first if self._release(one, least=number)]

    def _release(self, thread: PoolThread, least: int = 0) -> bool:
        """Let a thread leave, if there are more than *least*.

        It finishes what it runs; what waits in its deque goes to others.
        """
        with self._lock:
            if len(self._threads) <= least or thread.number not in self._threads:
                return False
            del self._threads[thread.number]
            self._leaving[thread.number] = thread
            thread.is_leaving = True
            moved = self.deques.remove(thread.number)
        self.sleepers.wake(thread.wake_up)
        while moved and self.sleepers.wake_one():
            moved -= 1
        return True

    def release_if_spare(self, thread: PoolThread) -> bool:
        """Let a thread leave that was idle long enough, if it is not needed."""
        scaler, now = self._scaler, self._clock.monotonic()
        is_spare = scaler is not None and scaler.may_leave(now, self.total, self.least)
        return is_spare and self._release(thread, least=self.least)

    def thread_ended(self, thread: PoolThread) -> None:
        """Forget a thread that ends; called by the thread itself."""
        self._release(thread)
        with self._lock:
            self._leaving.pop(thread.number, None)
        self.notify_if_idle()
        if self.waiting.is_closed:
            self.close()

    def alive(self) -> tuple[PoolThread, ...]:
        """Return all threads that may still run, with those that leave."""
        with self._lock:
            return (*self._threads.values(), *self._leaving.values())

    @property
    def total(self) -> int:
        """How many threads there are, without those that leave."""
        return len(self._threads)

    @property
    def idle_seconds(self) -> float | None:
        """How long a thread sleeps before it asks to leave; None: until it is woken."""
        scaler = self._scaler
        return scaler.rule.idle if scaler and self.total > self.least else None

    @property
    def autoscale(self) -> Autoscale | None:
        """How the number of threads is adapted."""
        scaler = self._scaler
        return None if scaler is None else scaler.rule

    @autoscale.setter
    def autoscale(self, rule: Autoscale | None) -> None:
        with self._lock:
            if self._scaling is not None:
                self._scaling.stop()
            self._scaler = None if rule is None else WaitScaler(rule)
            self._scaling = None
            if rule is not None and not self.waiting.is_closed:
                self._scaling = ScalingThread(self._grow, f"{self.name}-autoscale")
        # They sleep for as long as the old rule said.
        self.sleepers.wake_all()

    def _grow(self) -> float | None:
        scaler, oldest_at = self._scaler, self.waiting.oldest_at()
        if scaler is None or oldest_at is None:
            return None
        now = self._clock.monotonic()
        try:
            self.add(scaler.growth(now, oldest_at, self.total))
        except PoolStopped:
            return None
        except RuntimeError:
            # A filter of the user's may raise, and would end the thread that scales.
            with suppress(Exception):
                logger.exception("%s could not start another worker thread", self.name)
        return scaler.check_again_in(now, oldest_at)

    def close(self) -> None:
        """Accept no more work; threads end when nothing waits."""
        self.waiting.close()
        with self._lock:
            if self._scaling is not None:
                self._scaling.stop()
        self.sleepers.wake_all()

    def abandon(self) -> None:
        """Close, since the pool is gone. The collector may call this at any point."""
        self.waiting.close_unlocked()
        self.sleepers.wake_all_unlocked()

    def join(self, seconds: float | None) -> bool:
        """Wait for the threads to end; not for the caller's own."""
        deadline = None if seconds is None else monotonic() + seconds
        threads = [one.thread for one in self.alive()]
        for thread in threads:
            if thread is not current_thread():
                left = None if deadline is None else max(0.0, deadline - monotonic())
                thread.join(left)
        return not any(
            thread.is_alive() for thread in threads if thread is not current_thread()
        )

    def let_all_leave(self) -> None:
        """Let each thread end after what it runs, whatever waits."""
        for thread in self.alive():
            thread.is_leaving = True
        self.sleepers.wake_all()

    def shielded(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function; if the caller is our work, put its interruption off."""
        me = pool_thread_here(self)
        return function(*arguments) if me is None else me.shielded(function, *arguments)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        accepted = self.waiting.accepted
        return (
            not len(self.waiting)
            and self.deques.all_idle
            and (accepted == self.waiting.accepted)
        )

    def wait_until_idle(self, seconds: float | None) -> bool:
        """Wait until nothing waits and nothing runs."""
        with self._idle:
            self._waiting_for_idle += 1
            try:
                return self._idle.wait_for(lambda: self.is_idle, seconds)
            finally:
                self._waiting_for_idle -= 1

    def notify_if_idle(self) -> None:
        """Have those in `wait_until_idle` look again."""
        if self._waiting_for_idle:
            with self._idle:
                self._idle.notify_all()

    def _reset_after_fork(self) -> None:
        """Empty and stop the pool, in a forked child."""
        threads = (*self._threads.values(), *self._leaving.values())
        works = [*self.waiting.left_by_parent(), *running_work(threads)]
        forget_current_thread()
        self._begin_empty(self.waiting.limit)
        self.waiting.close()
        for work in works:
            work.end_in_child()
