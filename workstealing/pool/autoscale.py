"""How many workers a pool should have: decisions, and the thread that asks for them.

One `Autoscale` holds what the user wants, of a `Pool` or of a `WorkerPool`. The scalers
decide, and are pure: they are passed the time. `WaitScaler` is for a `Pool`, which
knows how long its work has waited; `BacklogScaler` is for a `WorkerPool`, which knows
how many tasks of its queue are due and how many have ended, and concludes from that
whether one has waited too long. Both grow soon and shrink late, so that the number of
workers does not flap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import TIMEOUT_MAX, Condition, Lock, Thread

from workstealing._checks import checked_seconds, checked_whole
from workstealing.errors import ConfigurationError

__all__ = ("Autoscale", "BacklogScaler", "ScalingThread", "WaitScaler")

_POOL_WAIT = 0.5
# How often the number of waiting tasks is noted within `wait`.
_NOTES = 100


@dataclass(frozen=True, slots=True)
class Autoscale:
    """How a pool adapts the number of its workers.

    Args:
        least: the fewest workers. `WorkerPool` only: a `Pool` never has fewer than it
            was made with or last scaled to.
        most: the most workers. Both pools.
        wait: seconds that work may wait before workers are added. Both pools. None:
            half a second in a `Pool`; in a `WorkerPool` only the backlog counts.
        step: how many workers are added at once because of `wait`. Both pools.
        idle: seconds without need for a worker before it leaves. Both pools: in a
            `Pool`, the worker had nothing to do for that time; in a `WorkerPool`, fewer
            workers would have been enough.
        backlog: how many due tasks per worker are fine; beyond that, workers are
            added. `WorkerPool` only.
    """

    least: int = 1
    most: int = 32
    wait: float | None = None
    step: int = 2
    idle: float = 10.0
    backlog: int = 10

    def __post_init__(self) -> None:
        checked_whole(self.least, "least", 1)
        checked_whole(self.most, "most", 1)
        if self.wait is not None:
            checked_seconds(self.wait, "wait", most=TIMEOUT_MAX)
        checked_whole(self.step, "step", 1)
        checked_seconds(self.idle, "idle", zero=True, most=TIMEOUT_MAX)
        checked_whole(self.backlog, "backlog", 1)
        if self.most < self.least:
            raise ConfigurationError(
                f"most must be >= least ({self.least}), not {self.most}"
            )


class WaitScaler:
    """Applies an `Autoscale` to a `Pool`: grows when work has waited too long.

    After it grew it waits as long again, so that the new workers can help before more
    are added; and for `idle` seconds no worker leaves.
    """

    def __init__(self, rule: Autoscale) -> None:
        self.rule = rule
        self._wait = _POOL_WAIT if rule.wait is None else rule.wait
        self._grown_at = -math.inf

    def growth(self, now: float, oldest_at: float, workers: int) -> int:
        """Return how many workers to add, for work submitted at *oldest_at*."""
        if now < self._due(oldest_at):
            return 0
        number = max(0, min(self.rule.step, self.rule.most - workers))
        if number:
            self._grown_at = now
        return number

    def check_again_in(self, now: float, oldest_at: float) -> float:
        """Return in how many seconds the same work may be a reason to grow."""
        due = self._due(oldest_at)
        return due - now if due > now else self._wait

    def may_leave(self, now: float, workers: int, least: int) -> bool:
        """Return whether a worker that was idle for `idle` seconds is not needed."""
        return workers > least and now - self._grown_at >= self.rule.idle

    def _due(self, oldest_at: float) -> float:
        return max(oldest_at, self._grown_at) + self._wait


class BacklogScaler:
    """Applies an `Autoscale` to a `WorkerPool`: one worker per `backlog` tasks.

    It grows at once, and shrinks to what was enough all through `idle` seconds. With
    `wait`, it also grows when fewer tasks have ended in that time than were waiting at
    its start, so that one of them must still be waiting. That costs no more requests,
    and works while no task is taken at all, unlike the waits that workers sample.
    """

    def __init__(self, rule: Autoscale) -> None:
        self.rule = rule
        self._needed: list[tuple[float, int]] = []
        # When, and how many will have ended when all that waited then have begun.
        self._waited: list[tuple[float, int]] = []

    def decide(self, now: float, workers: int, due: int, ended: int = 0) -> int:
        """Return how many workers there should be.

        Args:
            now: seconds.
            workers: how many there are.
            due: tasks that are due and have not ended.
            ended: how many tasks have ended on the workers so far.
        """
        rule = self.rule
        needed = math.ceil(due / rule.backlog)
        if rule.wait is not None:
            # A worker with a task is not idle, however small the backlog is.
            needed = max(needed, min(workers, due))
            if self._is_late(now, due - workers, ended, rule.wait):
                needed = max(needed, workers + rule.step)
        needed = min(rule.most, max(rule.least, needed))
        self._needed.append((now, needed))
        if needed >= workers:
            self._needed.clear()
            return needed
        if now - self._needed[0][0] < rule.idle:
            return min(max(workers, rule.least), rule.most)
        enough = max(number for _, number in self._needed)
        self._needed.clear()
        return enough

    def _is_late(self, now: float, waiting: int, ended: int, wait: float) -> bool:
        """Tell whether a task has waited too long.

        After a True it is False for as long again, so that new workers can help before
        more are added.
        """
        seen = self._waited
        if not seen or now - seen[-1][0] >= wait / _NOTES:
            seen.append((now, ended + waiting))
        while len(seen) > 1 and now - seen[1][0] >= wait:
            del seen[0]
        at, until = seen[0]
        if waiting <= 0 or now - at < wait or ended >= until:
            return False
        seen.clear()
        return True


class ScalingThread:
    """Calls *check* in a thread of its own, again and again, while there is need.

    *check* returns the seconds until it is to be called again, or None: then it is
    called after the next `wake()`.
    """

    def __init__(self, check: Callable[[], float | None], name: str) -> None:
        self._check = check
        self._change = Condition(Lock())
        self._is_asleep = False
        self._is_over = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have *check* called soon. Costs next to nothing if the thread is awake."""
        if self._is_asleep:
            with self._change:
                self._is_asleep = False
                self._change.notify()

    def stop(self) -> None:
        """End the thread; does not wait for a check that is under way."""
        with self._change:
            self._is_over = True
            self._change.notify()

    def _run(self) -> None:
        while True:
            with self._change:
                # Set before the check: work that comes after it will wake the thread.
                self._is_asleep = True
            seconds = self._check()
            with self._change:
                if seconds is None:
                    self._change.wait_for(lambda: self._is_over or not self._is_asleep)
                else:
                    self._is_asleep = False
                    self._change.wait_for(lambda: self._is_over, seconds)
                if self._is_over:
                    return
