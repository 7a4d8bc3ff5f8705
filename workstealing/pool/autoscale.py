"""How many workers a pool should have: decisions, and the thread that asks for them.

One `Autoscale` holds what the user wants, of a `Pool` or of a `WorkerPool`. The scalers
decide, and are pure: they are passed the time. `WaitScaler` is for a `Pool`, which
knows how long its work has waited; `BacklogScaler` is for a `WorkerPool`, which knows
how many tasks of its queue are due. Both grow soon and shrink late, so that the number
of workers does not flap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import TIMEOUT_MAX, Condition, Lock, Thread

from workstealing._checks import checked_seconds, checked_whole
from workstealing.errors import ConfigurationError

__all__ = ("Autoscale", "BacklogScaler", "ScalingThread", "WaitScaler")


@dataclass(frozen=True, slots=True)
class Autoscale:
    """How a pool adapts the number of its workers.

    Args:
        least: the fewest workers. `WorkerPool` only: a `Pool` never has fewer than it
            was made with or last scaled to.
        most: the most workers. Both pools.
        wait: seconds that work may wait before workers are added. `Pool` only.
        step: how many workers are added at once. `Pool` only.
        idle: seconds without need for a worker before it leaves. Both pools: in a
            `Pool`, the worker had nothing to do for that time; in a `WorkerPool`, fewer
            workers would have been enough.
        backlog: tasks per worker, due and not ended, that are fine; more add workers.
            `WorkerPool` only.
    """

    least: int = 1
    most: int = 32
    wait: float = 0.5
    step: int = 2
    idle: float = 10.0
    backlog: int = 10

    def __post_init__(self) -> None:
        checked_whole(self.least, "least", 1)
        checked_whole(self.most, "most", 1)
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
        return due - now if due > now else self.rule.wait

    def may_leave(self, now: float, workers: int, least: int) -> bool:
        """Return whether a worker that was idle for `idle` seconds is not needed."""
        return workers > least and now - self._grown_at >= self.rule.idle

    def _due(self, oldest_at: float) -> float:
        return max(oldest_at, self._grown_at) + self.rule.wait


class BacklogScaler:
    """Applies an `Autoscale` to a `WorkerPool`: one worker per `backlog` tasks.

    It grows at once, and shrinks to what was enough all through `idle` seconds.
    """

    def __init__(self, rule: Autoscale) -> None:
        self.rule = rule
        self._needed: list[tuple[float, int]] = []

    def decide(self, now: float, workers: int, due: int) -> int:
        """Return how many workers there should be, for *due* tasks."""
        rule = self.rule
        needed = min(rule.most, max(rule.least, math.ceil(due / rule.backlog)))
        self._needed.append((now, needed))
        if needed >= workers:
            self._needed.clear()
            return needed
        if now - self._needed[0][0] < rule.idle:
            return min(max(workers, rule.least), rule.most)
        enough = max(number for _, number in self._needed)
        self._needed.clear()
        return enough


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
