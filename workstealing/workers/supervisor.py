"""Watches over one worker from a thread that waits for nobody.

Time limits: a task that exceeds its time limit, or ignores a cancellation, is
interrupted. If that does not stop it, it is given up after some seconds, and its slot
is replaced; what it still reports is refused. Its thread is not forgotten: it is
interrupted as soon as that is safe, or such threads would add up.

The silence of Redis: when the lease must be assumed lost, running tasks learn of it. A
client without timeouts would wait indefinitely on a half-open connection, so after a
minute its connections are shut down.

The supervisor does no I/O, takes no lock of the user's and runs none of their code; it
acts first, and logs from another thread. The loop looks whether it still answers, and
ends the worker if it does not: a worker that nobody watches must not keep its lease.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.tasks.attempt import Attempt
from workstealing.workers.lease import Lease
from workstealing.workers.slots import Slot

__all__ = ("GRACE_SECONDS", "Supervisor")

logger = BackgroundLogger(__name__)

GRACE_SECONDS = 5.0
"""From asking to interrupting, and from interrupting to giving up."""

_TICK_SECONDS = 0.05
_RETRY_SECONDS = 0.001
_RETRIES = 50
_QUICK_TURN_SECONDS = 0.0002
_LONGEST_SILENCE = 60.0
# So long without a tick, and then no tick while the loop waits for one.
_UNRESPONSIVE_SECONDS = 10.0
_ANSWER_SECONDS = 5.0


@dataclass(slots=True)
class _Watched:
    """What the supervisor knows of one attempt."""

    slot: Slot
    since: float
    cancelled_at: float | None = None
    interrupted_at: float | None = None
    is_given_up: bool = False


class Supervisor:
    """A daemon thread that checks a worker every 50 ms.

    Args:
        name: of the worker.
        slots: returns the slots whose tasks can be made to stop.
        lease: when Redis answered last.
        lease_lost: lets running tasks know that other workers may have them.
        give_up: is told of a slot and an attempt that cannot be stopped.
        shut_down: closes all connections, so that threads that wait on one reconnect.
        tick: what else to check then.
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
        give_up: Callable[[Slot, Attempt], object],
        shut_down: Callable[[], None],
        tick: Callable[[], object],
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
        self._given_up: list[tuple[Slot, Attempt]] = []
        self._shut_down_at = self._ticked_at = clock.monotonic()
        self._ticked = Condition()
        self._stopping = Event()
        self._thread = Thread(
            target=self._run, name="workstealing-supervisor", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._ticked_at = self._clock.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait briefly."""
        self._stopping.set()
        if self._thread.is_alive():
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
        """Check everything once."""
        self._look_at_lease()
        self._look_at_slots()
        self._look_at_given_up()
        self._tick()

    def retry_interrupts(self) -> bool:
        """Retry interrupts that were not safe before; True if none is pending."""
        asked = [
            watched.slot
            for _, watched in self._watched.values()
            if watched.interrupted_at is not None and not watched.is_given_up
        ]
        return sum(not slot.retry_interrupt() for slot in asked) == 0

    def _run(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.look()
                self._keep_retrying()
            except Exception as error:  # noqa: BLE001 - it must not end
                logger.error(
                    "error in the supervisor of worker %s, which continues",
                    self._name,
                    error=error,
                )
            with self._ticked:
                self._ticked_at = self._clock.monotonic()
                self._ticked.notify_all()

    def _keep_retrying(self) -> None:
        # A task that logs or imports all the time can be interrupted only in rare
        # moments, and is found elsewhere only after its thread has had a turn.
        if self.retry_interrupts():
            return
        with _QUICK_TURNS.taken():
            for _ in range(_RETRIES):
                if self._stopping.wait(_RETRY_SECONDS) or self.retry_interrupts():
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
                "worker %s is reconnecting: Redis has not answered for %.0f s",
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

    def _look_at_given_up(self) -> None:
        self._given_up = [
            (slot, attempt)
            for slot, attempt in self._given_up
            if slot.attempt is attempt
        ]
        for slot, _ in self._given_up:
            slot.retry_interrupt()

    def _judge(self, attempt: Attempt, watched: _Watched, now: float) -> None:
        if watched.is_given_up:
            return
        if watched.interrupted_at is not None:
            if now - watched.interrupted_at >= self._grace:
                watched.is_given_up = True
                self._given_up.append((watched.slot, attempt))
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
            is_asked = watched.slot.interrupt(attempt)
            can_end = is_asked or attempt.definition.is_coroutine
            if is_overdue and not can_end and watched.slot.attempt is attempt:
                logger.warning(
                    "task %s (%s) exceeds its time limit of %g s and cannot be stopped"
                    " by a plain Worker: use a WorkerPool, or `workstealing worker`",
                    attempt.task.id,
                    attempt.definition.ability,
                    attempt.timeout,
                )


class _QuickTurns:
    """Lets the threads of this process take turns more often, while anybody asks.

    It is a setting of the interpreter, so it is shared, and put back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _QUICK_TURN_SECONDS))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    sys.setswitchinterval(self._before)


_QUICK_TURNS = _QuickTurns()
