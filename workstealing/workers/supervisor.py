"""Watches over one worker from a thread that waits for nobody.

Time limits: a task that is over its time, or does not heed a cancellation, is made to
stop. If it does not stop either it is given up after some seconds, and its slot is
replaced; what it would still report is refused.

The silence of Redis: when the lease must be taken for lost, running tasks learn of it.
A client without time limits would wait for ever on a half-open connection, so after a
minute its connections are shut down.

The supervisor does no I/O, takes no lock of the user's and runs none of their code; it
acts first, and logs from another thread. The loop looks whether it still answers, and
ends the worker if it does not: a worker that nobody watches must not keep its lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition, Event, Thread

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.tasks.attempt import Attempt
from workstealing.workers.slots import Slot

__all__ = ("GRACE_SECONDS", "Lease", "Supervisor")

logger = BackgroundLogger(__name__)

GRACE_SECONDS = 5.0
"""From asking to interrupting, and from interrupting to giving up."""

_TICK_SECONDS = 0.05
_DELIVERY_SECONDS = 0.001
_DELIVERIES = 50
_LONGEST_SILENCE = 60.0
# So long without a tick, and then no tick while the loop waits for one.
_UNRESPONSIVE_SECONDS = 10.0
_ANSWER_SECONDS = 5.0


class Lease:
    """When Redis last renewed the lease of a worker."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.seconds = seconds
        self._clock = clock
        self._renewed_at = clock.monotonic()

    def renewed(self) -> None:
        """Note that Redis has answered."""
        self._renewed_at = self._clock.monotonic()

    @property
    def silence(self) -> float:
        """Seconds since Redis answered last."""
        return self._clock.monotonic() - self._renewed_at

    @property
    def beat(self) -> float:
        """Seconds after which it is to be renewed; it also brings cancellations."""
        return min(1.0, self.seconds / 3)

    @property
    def is_lost(self) -> bool:
        """Whether other workers may have the tasks by now."""
        return self.silence >= self.seconds


@dataclass(slots=True)
class _Watched:
    """What the supervisor knows of one attempt."""

    slot: Slot
    since: float
    cancelled_at: float | None = None
    interrupted_at: float | None = None
    is_given_up: bool = False


class Supervisor:
    """A daemon thread that looks at a worker some times a second.

    Args:
        name: of the worker.
        slots: returns the slots whose tasks can be made to stop.
        lease: when Redis answered last.
        lease_lost: lets running tasks know that other workers may have them.
        give_up: is told of a slot and an attempt that cannot be stopped.
        shut_down: ends all connections, so that those who wait on one begin anew.
        tick: what else is to be looked at, some times a second.
        clock: how long tasks have run.
        grace: seconds between the steps.
    """

    def __init__(
        self,
        name: str,
        slots: Callable[[], Iterable[Slot]],
        lease: Lease,
        *,
        lease_lost: Callable[[], None],
        give_up: Callable[[Slot, Attempt], None],
        shut_down: Callable[[], None],
        tick: Callable[[], None],
        clock: Clock,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._name = name
        self._slots = slots
        self._lease = lease
        self._lease_lost = lease_lost
        self._give_up = give_up
        self._shut_down = shut_down
        self._tick = tick
        self._clock = clock
        self._grace = grace
        self._watched: dict[int, tuple[Attempt, _Watched]] = {}
        self._shut_down_at = self._ticked_at = clock.monotonic()
        self._ticked = Condition()
        self._stopping = Event()
        self._thread = Thread(
            target=self._run, name="workstealing-supervisor", daemon=True
        )

    def start(self) -> None:
        """Begin to look."""
        self._ticked_at = self._clock.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it a while."""
        self._stopping.set()
        self._thread.join(_ANSWER_SECONDS)

    def answers(self) -> bool:
        """Return whether the thread still does its work.

        A task that held the interpreter may have kept it from that, so it gets some
        seconds to show that it is there.
        """
        last = self._ticked_at
        if self._clock.monotonic() - last < _UNRESPONSIVE_SECONDS:
            return True
        with self._ticked:
            return self._ticked.wait_for(
                lambda: self._ticked_at != last, _ANSWER_SECONDS
            )

    def look(self) -> None:
        """Look at everything once."""
        self._look_at_lease()
        self._look_at_slots()
        self._tick()

    def deliver(self) -> bool:
        """Try again to interrupt what could not be safely; True if that is over."""
        asked = [
            watched.slot
            for _, watched in self._watched.values()
            if watched.interrupted_at is not None and not watched.is_given_up
        ]
        return sum(not slot.deliver() for slot in asked) == 0

    def _run(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.look()
                self._keep_delivering()
            except Exception as error:  # noqa: BLE001 - it must not end
                logger.error(
                    "the supervisor of worker %s failed", self._name, error=error
                )
            with self._ticked:
                self._ticked_at = self._clock.monotonic()
                self._ticked.notify_all()

    def _keep_delivering(self) -> None:
        # A task that logs all the time can be interrupted only in rare moments.
        for _ in range(_DELIVERIES):
            if self.deliver() or self._stopping.wait(_DELIVERY_SECONDS):
                return

    def _look_at_lease(self) -> None:
        lease, now = self._lease, self._clock.monotonic()
        if lease.is_lost:
            self._lease_lost()
        is_silent = lease.silence >= _LONGEST_SILENCE
        if is_silent and now - self._shut_down_at >= _LONGEST_SILENCE:
            self._shut_down_at = now
            self._shut_down()
            logger.warning(
                "worker %s had no answer from Redis for %.0f s and connects again",
                self._name,
                lease.silence,
            )

    def _look_at_slots(self) -> None:
        now = self._clock.monotonic()
        seen: dict[int, tuple[Attempt, _Watched]] = {}
        for slot in self._slots():
            attempt = slot.attempt
            if attempt is None:
                continue
            known = self._watched.get(id(attempt))
            watched = known[1] if known else _Watched(slot, now)
            # The attempt is kept with it, so that its id is not reused meanwhile.
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
        is_unheeded = (
            watched.cancelled_at is not None
            and now - watched.cancelled_at >= self._grace
        )
        if attempt.is_interrupted:
            watched.interrupted_at = now
        elif is_overdue or is_unheeded:
            watched.interrupted_at = now
            attempt.is_overdue = is_overdue
            watched.slot.interrupt(attempt)
