"""Keeps the lease of a process while a brief task runs there for longer than usual.

Most brief tasks end long before the lease, and cost nothing here. But a plain function
cannot be stopped. While it runs in the thread of its host, the process would seem dead:
workers would take the task, and run it a second time.

A daemon thread looks a few times per lease. It starts with the first task, and ends
when no task was begun for a while. It stops no task; it tells a task through its
context that it was cancelled, or that a worker may have taken it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from workstealing._forking import reset_in_children
from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.errors import RedisError
from workstealing.queue.brief_calls import StillHeld
from workstealing.tasks.attempt import Attempt
from workstealing.tasks.context import control_of
from workstealing.workers.lease import Lease

__all__ = ("SpareLease",)

logger = BackgroundLogger(__name__)

# The thread ends after so many looks in a row without a new task.
_IDLE_LOOKS = 20


class SpareLease:
    """The lease of the tasks that one `SpareWorker` has in hand.

    Args:
        seconds: how long it lasts.
        clock: how long ago it was renewed.
    """

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lease = Lease(seconds, clock)
        self._running: tuple[Attempt, Callable[[], StillHeld]] | None = None
        self._begun = 0
        self._thread: Thread | None = None
        self._is_over = Event()
        self._lock = Lock()
        reset_in_children(self, SpareLease._forget_parent)

    def renewed(self) -> None:
        """Note an exchange that took tasks."""
        self._lease.renewed()

    @contextmanager
    def kept(self, attempt: Attempt, renew: Callable[[], StillHeld]) -> Iterator[None]:
        """Renew the lease if the attempt lasts that long, while the context does."""
        self._begun += 1
        self._running = attempt, renew
        try:
            if self._thread is None:
                self._start()
            yield
        finally:
            self._running = None

    def look(self) -> None:
        """Renew the lease, if a task runs and it is time."""
        running, lease = self._running, self._lease
        if running is None or lease.silence < lease.renew_seconds:
            return
        attempt, renew = running
        control, task_id = control_of(attempt.context), attempt.task.id
        asked_at = self._clock.monotonic()
        try:
            held = renew()
        except RedisError as error:
            logger.debug("the lease of brief tasks was not renewed: %r", error)
        else:
            # Meanwhile it may have ended, and been reported.
            if self._running is running and task_id not in held.tasks:
                control.is_lease_lost = True
            if task_id in held.cancelled:
                control.is_cancelled = True
            lease.renewed(asked_at)
        if lease.is_lost:
            control.is_lease_lost = True

    def close(self) -> None:
        """End the thread, and wait for the renewal that is under way.

        If a task runs still, the thread stays, and ends some time after that.
        """
        if self._running is not None:
            return
        with self._lock:
            thread, self._thread = self._thread, None
            self._is_over.set()
        if thread is not None:
            thread.join()

    def _forget_parent(self) -> None:
        self._lease = Lease(self._seconds, self._clock)
        self._running = self._thread = None
        self._is_over, self._lock = Event(), Lock()

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            is_over = Event()
            thread = Thread(
                target=self._watch,
                args=(is_over,),
                name="workstealing-brief-lease",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError as error:
                # At a limit of threads, or while the interpreter ends.
                logger.warning("the lease of brief tasks cannot be renewed: %s", error)
            else:
                self._is_over, self._thread = is_over, thread

    def _watch(self, is_over: Event) -> None:
        begun_before, idle_looks = -1, 0
        while not is_over.wait(self._lease.renew_seconds / 2):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the task goes on
                logger.error("the lease of brief tasks was not renewed", error=error)
            is_idle = self._running is None and self._begun == begun_before
            begun_before, idle_looks = self._begun, idle_looks + 1 if is_idle else 0
            if idle_looks >= _IDLE_LOOKS and self._has_ended(begun_before):
                return

    def _has_ended(self, begun_before: int) -> bool:
        """Let the next task start another thread, unless it has begun already."""
        with self._lock:
            # A task that begins after this check finds no thread, for it counts first.
            thread, self._thread = self._thread, None
            if self._begun != begun_before:
                self._thread = thread
            return self._thread is None
