"""The time of one slice, and which brief tasks are likely to end in it.

It goes by how long tasks and exchanges took in this process. It stops no task; it only
decides which ones are begun.

A job may outlast its slice: an asyncio host leaves a thread behind, and a coroutine may
ignore its cancellation. There is no slice any more then, and `time_left()` is infinite.
A `SpareMoment` ends when its slice should have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from math import inf

from workstealing.clock import Clock
from workstealing.recruiting.slice import time_left
from workstealing.tasks.definition import TaskDefinition
from workstealing.workers.learnt_times import LearntTimes

__all__ = ("MOST_BYTES", "SpareMoment", "is_in_event_loop", "runnable")

# With so many, the round trip that they share costs little for each.
_MOST_TASKS = 20
MOST_BYTES = 32 * 1024
"""Bytes of outcomes in one exchange, which may have to cross a slow network."""
# A coroutine that closes a connection needs a round trip.
_LONGEST_GRACE = 0.1
# The timer of an event loop may be early by its resolution.
_AT_ONCE = 0.002


class SpareMoment:
    """What is left of a slice, from its beginning on.

    Args:
        times: how long tasks and exchanges take.
        clock: when it is over.
        batch_seconds: for how long tasks may be in hand.
        has_grace: whether each task is to have time left to heed its cancellation.
    """

    def __init__(
        self,
        times: LearntTimes,
        clock: Clock,
        batch_seconds: float,
        *,
        has_grace: bool = False,
    ) -> None:
        self._times = times
        self._clock = clock
        self._batch_seconds = batch_seconds
        self.budget = time_left()
        """The seconds that it has in all."""
        self.grace = min(_LONGEST_GRACE, self.budget / 4) if has_grace else 0.0
        """The seconds that a task has from its cancellation to the end of the slice."""
        self._until = clock.monotonic() + self.budget

    @property
    def left(self) -> float:
        """The seconds that are left, even if the host has ended the slice."""
        return max(0.0, min(time_left(), self._until - self._clock.monotonic()))

    @property
    def limit(self) -> float:
        """The seconds that a task may take now, so that it can be reported in time."""
        exchange = self._times.exchange(self._clock.monotonic())
        return self.left - exchange - self.grace

    @property
    def has_time_to_tell(self) -> bool:
        """Whether one more round trip is likely to end in time."""
        return self.left > self._times.exchange(self._clock.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether a task that is cancelled now is cancelled as the slice is over."""
        return self.left < _AT_ONCE

    def fitting(
        self, definitions: Iterable[TaskDefinition], *, unknown: float
    ) -> tuple[str, ...]:
        """Return the abilities of tasks that are expected to end in time.

        A task that never ran here is expected to take *unknown* seconds.
        """
        left = self.left
        return tuple(
            ability
            for definition in definitions
            for ability in definition.abilities
            if self._needed(ability, unknown, exchanges=2) < left
        )

    def number_fitting(self, fitting: Sequence[str]) -> int:
        """Return how many tasks are likely to end in half of the time that is left.

        The time that the slowest of them ever took is set aside first.
        """
        slowest = max(map(self._times.average, fitting), default=inf)
        longest = max(
            (self._needed(one, 0.0, exchanges=2) for one in fitting), default=inf
        )
        left = self.left - longest
        if slowest == inf or not 0 < left < inf:
            return 1
        seconds = min(left / 2, self._batch_seconds)
        in_time = seconds / slowest if slowest else inf
        in_size = MOST_BYTES / self._times.size
        return int(min(_MOST_TASKS, 1 + in_time, 1 + in_size))

    def has_time_for(self, ability: str) -> bool:
        """Return whether a task that was taken can still be run, and be reported."""
        return self.left > self._needed(ability, 0.0, exchanges=1)

    def _needed(self, ability: str, unknown: float, *, exchanges: int) -> float:
        """Return how many seconds a task needs, with so many exchanges."""
        now = self._clock.monotonic()
        task = self._times.task(ability, unknown, now)
        return task + exchanges * self._times.exchange(now) + self.grace


def runnable(
    definitions: Iterable[TaskDefinition], *, is_async: bool
) -> list[TaskDefinition]:
    """Return the brief ones that can be run here.

    An asyncio host takes coroutine functions. Another one takes plain functions, and
    coroutine functions too in a thread that has no running event loop.
    """
    takes_functions = not is_async
    takes_coroutines = is_async or not is_in_event_loop()
    return [
        one
        for one in definitions
        if one.brief and (takes_coroutines if one.is_coroutine else takes_functions)
    ]


def is_in_event_loop() -> bool:
    """Return whether an event loop runs in this thread, so that no other can."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
