"""One piece of work: what to call, how far it is, and how it ended.

It is a `concurrent.futures.Future`, so everything that waits for futures (`wait`,
`as_completed`, asyncio) can wait for it. What a pool reports of its work is here too:
its numbers at one moment, and what a stop did.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from enum import Enum
from threading import Condition
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing._interrupt import Interruptible
from workstealing.errors import ResultTimeout, WorkDiscarded

if TYPE_CHECKING:
    from workstealing.pool.pool_threads import PoolThreads

__all__ = ("LazyCondition", "PoolStats", "StopReport", "Work", "WorkStatus")

T = TypeVar("T")


class WorkStatus(str, Enum):
    """How far a piece of work is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DISCARDED = "discarded"

    __str__ = str.__str__


class Work(Future[T]):
    """A call that a pool runs; made by the pool."""

    def __init__(
        self,
        threads: PoolThreads,
        function: Callable[..., T],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        # As Future.__init__ does it, with a lighter condition; a test compares the two.
        self._condition = LazyCondition()  # type: ignore[assignment]
        self._state = "PENDING"
        self._result = None
        self._exception = None
        self._waiters = []
        self._done_callbacks: list[Callable[[Future[T]], object]] = []
        self.id = ""
        """Its name in the pool, for `discard()`."""
        self.function: Callable[..., T] | None = function
        """What is called; None once it was, so that nothing is kept alive."""
        self.arguments = arguments
        self.keywords = keywords
        self.submitted_at = 0.0
        self.interruption = Interruptible()
        # None once it has ended.
        self._threads: PoolThreads | None = threads

    def status(self) -> WorkStatus:
        """Return how far it is."""
        if self.cancelled():
            return WorkStatus.DISCARDED
        if self.running():
            return WorkStatus.RUNNING
        if not self.done():
            return WorkStatus.WAITING
        error = super().exception()
        if error is None:
            return WorkStatus.DONE
        if isinstance(error, _Discarded):
            return WorkStatus.DISCARDED
        return WorkStatus.FAILED

    def result(self, timeout: float | None = None) -> T:
        """Return what the call returned, or raise what it raised.

        If the caller is work of the same pool, waits without a timeout, and this has
        not begun, the caller runs it itself. So work may wait for work, even in a pool
        of one.

        Raises:
            ResultTimeout: it did not end in time.
            WorkDiscarded: it was discarded.
        """
        self._run_if_waiting(timeout)
        try:
            return super().result(timeout)
        except (CancelledError, FutureTimeout) as error:
            ours = self._translated(error)
            if ours is None:
                raise
            raise ours from None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the call raised, or None; else as `result()`."""
        self._run_if_waiting(timeout)
        try:
            return super().exception(timeout)
        except (CancelledError, FutureTimeout) as error:
            ours = self._translated(error)
            if ours is None:
                raise
            raise ours from None

    def cancel(self) -> bool:
        """Discard it if it waits; False if it runs or has ended."""
        threads = self._threads
        return super().cancel() if threads is None else threads.withdraw(self)

    def finish(self, value: T) -> None:
        """Mark as done."""
        self._let_go()
        try:
            self.set_result(value)
        except InvalidStateError:
            # Anyone who holds a future may end it. That came first, so it stays.
            return

    def fail(self, error: BaseException) -> None:
        """Mark as failed."""
        self._let_go()
        try:
            self.set_exception(error)
        except InvalidStateError:
            return

    def end_interrupted(self) -> None:
        """Mark as discarded while it ran."""
        self.fail(_Discarded(f"work {self.id} was interrupted"))

    def end_not_begun(self) -> None:
        """Mark as discarded; called by the thread that claimed it.

        What it would have called is kept, so that it can be submitted elsewhere.
        """
        self._threads = None
        # The second call notifies `wait()` and `as_completed()`.
        if super().cancel():
            self.set_running_or_notify_cancel()

    def end_claimed(self) -> bool:
        """Mark as discarded if it has not begun yet; return whether that is so."""
        return super().cancel()

    def end_in_child(self) -> None:
        """Mark as discarded in a forked child, where no thread will ever run it."""
        # A thread that exists only in the parent may hold the old one.
        self._condition = LazyCondition()  # type: ignore[assignment]
        if self.running():
            self.end_interrupted()
        elif not self.done():
            self.end_not_begun()

    def _let_go(self) -> None:
        self._threads = None
        self.function = None
        self.arguments, self.keywords = (), {}

    def _run_if_waiting(self, timeout: float | None) -> None:
        threads = self._threads
        if threads is not None and timeout is None:
            threads.help(self)

    def _translated(self, error: Exception) -> Exception | None:
        """Return our error for one of a future; None if it is the work's own."""
        if self.cancelled():
            return _Discarded(f"work {self.id} was discarded before it began")
        if isinstance(error, FutureTimeout) and not self.done():
            return _Late(f"work {self.id} is still {self.status()}: wait longer for it")
        return None


@dataclass(frozen=True, slots=True)
class PoolStats:
    """A pool at one moment."""

    workers: int = 0
    """Workers: threads, slots or processes."""
    running: int = 0
    """Work, or tasks, that run now."""
    waiting: int = 0
    """Work, or tasks that are due, not begun yet."""
    stolen: int = 0
    """Work, or tasks, ever taken from the deque of another worker."""


@dataclass(frozen=True, slots=True)
class StopReport:
    """What `stop()`, `scale()` or `discard()` of a `Pool` did to its work."""

    not_begun: tuple[Work[Any], ...] = ()
    """Taken out before it began, in the order it was submitted. It is discarded; its
    `function`, `arguments` and `keywords` are kept, to be submitted to another pool."""
    interrupted: tuple[Work[Any], ...] = ()
    """Stopped while it ran; it is discarded."""
    running: tuple[Work[Any], ...] = ()
    """Still running: it was not interrupted, or cannot be, as inside a C call."""
    unknown: tuple[str, ...] = ()
    """Ids of no work that waits or runs: it has ended, or was never in this pool."""

    @classmethod
    def of(
        cls,
        running: Iterable[Work[Any]],
        *,
        not_begun: Iterable[Work[Any]] = (),
        unknown: Iterable[str] = (),
    ) -> StopReport:
        """Sort what ran when the stop began by how far it is now."""
        # Without what was cancelled just before it would have run.
        ran = [(work, work.status()) for work in running if not work.cancelled()]
        return cls(
            tuple(not_begun),
            tuple(work for work, status in ran if status is WorkStatus.DISCARDED),
            tuple(work for work, _ in ran if not work.done()),
            tuple(unknown),
        )


class LazyCondition(RLock):  # type: ignore[misc]  # final in typeshed only
    """What `concurrent.futures.Future` needs of a `threading.Condition`.

    A real one makes nine objects and enters by Python code. Most work has ended before
    anyone waits for it, so this is a plain re-entrant lock, which makes a condition
    when the first thread waits.
    """

    _condition: Condition | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait to be notified, acquire the lock again."""
        if self._condition is None:
            self._condition = Condition(self)
        return self._condition.wait(timeout)

    def notify(self, number: int = 1) -> None:
        """Wake some of the waiting threads; the caller holds the lock."""
        if self._condition is not None:
            self._condition.notify(number)

    def notify_all(self) -> None:
        """Wake all waiting threads; the caller holds the lock."""
        if self._condition is not None:
            self._condition.notify_all()


class _Discarded(WorkDiscarded, CancelledError):
    """Also caught as the error of `concurrent.futures`."""


class _Late(ResultTimeout, FutureTimeout):
    """Also caught as the error of `concurrent.futures` on Python 3.10."""
