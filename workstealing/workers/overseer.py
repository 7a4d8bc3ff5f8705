"""Watches what runs in a pool: too long, cancelled, or in the way of a stop.

A task that is over its time, or does not heed a cancellation, is made to stop. One that
does not stop either is given up after some seconds: its slot is replaced, what it would
still report is refused, and it is told of as a zombie. None of this needs Redis.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event, Thread
from typing import Protocol

from workstealing.clock import Clock
from workstealing.tasks.attempt import Attempt

__all__ = ("GRACE_SECONDS", "Overseer", "Slot")

logger = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""From asking to interrupting, and from interrupting to giving up."""

_TICK_SECONDS = 0.05


class Slot(Protocol):
    """A place where one task runs at a time."""

    @property
    def attempt(self) -> Attempt | None:
        """What runs there now."""
        ...

    def interrupt(self, attempt: Attempt) -> bool:
        """Make it stop, if it still runs; tell whether it was asked."""
        ...


@dataclass(slots=True)
class _Watched:
    """What is known of one attempt."""

    slot: Slot
    since: float
    cancelled_at: float | None = None
    interrupted_at: float | None = None
    is_given_up: bool = False


class Overseer:
    """A daemon thread that looks at every slot, some times a second.

    Args:
        slots: the slots, those included that leave when their task has ended.
        give_up: is told of a slot and an attempt that cannot be stopped.
        tick: what else is to be looked at, some times a second.
        clock: how long tasks have run.
        grace: seconds between the steps.
    """

    def __init__(
        self,
        slots: Callable[[], Iterable[Slot]],
        give_up: Callable[[Slot, Attempt], None],
        tick: Callable[[], None],
        clock: Clock,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._slots = slots
        self._give_up = give_up
        self._tick = tick
        self._clock = clock
        self._grace = grace
        self._watched: dict[int, tuple[Attempt, _Watched]] = {}
        self._stopping = Event()
        self._thread = Thread(target=self._live, name="workstealing-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        self._thread.join()

    def look(self) -> None:
        """Look at every slot once."""
        now = self._clock.monotonic()
        seen: dict[int, tuple[Attempt, _Watched]] = {}
        for slot in self._slots():
            attempt = slot.attempt
            if attempt is None:
                continue
            known = self._watched.get(id(attempt))
            watched = known[1] if known else _Watched(slot, now)
            # The attempt is kept with it, so that its id is not another's meanwhile.
            seen[id(attempt)] = (attempt, watched)
            self._judge(attempt, watched, now)
        self._watched = seen

    def _judge(self, attempt: Attempt, watched: _Watched, now: float) -> None:
        if watched.is_given_up:
            return
        if watched.interrupted_at is not None:
            if now - watched.interrupted_at >= self._grace:
                watched.is_given_up = True
                self._give_up(watched.slot, attempt)
            return
        if attempt.context.cancelled and watched.cancelled_at is None:
            watched.cancelled_at = now
        is_overdue = (
            attempt.timeout is not None and now - watched.since > attempt.timeout
        )
        is_deaf = (
            watched.cancelled_at is not None
            and now - watched.cancelled_at >= self._grace
        )
        if attempt.is_interrupted:
            watched.interrupted_at = now
        elif is_overdue or is_deaf:
            watched.interrupted_at = now
            attempt.is_overdue = is_overdue
            watched.slot.interrupt(attempt)

    def _live(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.look()
                self._tick()
            except Exception:
                logger.exception("the watch over a pool failed; it goes on")
