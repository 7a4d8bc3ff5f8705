"""One piece of work: what to call, how far it is, what came of it.

It is a `concurrent.futures.Future`, so whatever waits for futures (`wait`,
`as_completed`, asyncio) takes it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from enum import Enum
from typing import Any, Protocol, TypeVar

from workstealing.errors import ResultTimeout, WorkDiscarded
from workstealing.pool.interrupting import Interruptible
from workstealing.pool.monitor import Monitor

__all__ = ("Keeper", "Work", "WorkStatus")

T = TypeVar("T")


class WorkStatus(str, Enum):
    """How far a piece of work is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DISCARDED = "discarded"

    __str__ = str.__str__


class Keeper(Protocol):
    """Whoever holds the work until it is over."""

    def help(self, work: Work[Any]) -> None:
        """Run the work here and now, if it waits and the caller is a worker."""
        ...

    def withdraw(self, work: Work[Any]) -> bool:
        """Discard the work, if it waits."""
        ...


class Work(Future[T]):
    """A call that a pool runs; made by the pool."""

    def __init__(
        self,
        keeper: Keeper,
        function: Callable[..., T],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        # As Future.__init__ does it, with a lighter condition; a test compares the two.
        self._condition = Monitor()  # type: ignore[assignment]
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
        self.given_at = 0.0
        self.interruption = Interruptible()
        self._keeper: Keeper | None = keeper

    def status(self) -> WorkStatus:
        """Tell how far it is."""
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

        A worker of the same pool that asks without a timeout for work which still
        waits runs it itself: so work may wait for work, even in a pool of one.

        Raises:
            ResultTimeout: it was not over in time.
            WorkDiscarded: it was discarded.
        """
        self._be_helped(timeout)
        try:
            return super().result(timeout)
        except (CancelledError, FutureTimeout) as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the call raised, or None; else as `result()`."""
        self._be_helped(timeout)
        try:
            return super().exception(timeout)
        except (CancelledError, FutureTimeout) as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from None

    def cancel(self) -> bool:
        """Discard it if it waits; False if it runs or is over."""
        keeper = self._keeper
        return super().cancel() if keeper is None else keeper.withdraw(self)

    def finish(self, value: T) -> None:
        """Be done."""
        self._let_go()
        try:
            self.set_result(value)
        except InvalidStateError:
            # Whoever holds a future may end it. It was first, so it stays so.
            return

    def fail(self, error: BaseException) -> None:
        """Be failed."""
        self._let_go()
        try:
            self.set_exception(error)
        except InvalidStateError:
            return

    def end_interrupted(self) -> None:
        """Be discarded while it ran."""
        self.fail(_Discarded(f"work {self.id} was interrupted"))

    def end_not_begun(self) -> None:
        """Be discarded, by the one who claimed it.

        What it would have called is kept, for whoever wants it.
        """
        self._keeper = None
        # The second tells those who wait for several futures at once.
        if super().cancel():
            self.set_running_or_notify_cancel()

    def end_on_its_way(self) -> bool:
        """Be discarded, if the one who claimed it has not begun it yet."""
        return super().cancel()

    def end_in_child(self) -> None:
        """Be discarded in a forked child, where nobody will ever run it."""
        # The old one may be held for ever, by a thread that exists in the parent only.
        self._condition = Monitor()  # type: ignore[assignment]
        if self.running():
            self.end_interrupted()
        elif not self.done():
            self.end_not_begun()

    def _let_go(self) -> None:
        self._keeper = None
        self.function = None
        self.arguments, self.keywords = (), {}

    def _be_helped(self, timeout: float | None) -> None:
        keeper = self._keeper
        if keeper is not None and timeout is None:
            keeper.help(self)

    def _told(self, error: Exception) -> Exception | None:
        """Say it in our words; None if it is the work's own error."""
        if self.cancelled():
            return _Discarded(f"work {self.id} was discarded before it was begun")
        if isinstance(error, FutureTimeout) and not self.done():
            return _Late(f"work {self.id} is still {self.status()}: wait longer")
        return None


class _Discarded(WorkDiscarded, CancelledError):
    """Also caught by those who know futures only."""


class _Late(ResultTimeout, FutureTimeout):
    """Also caught by those who know futures only, on Python 3.10."""
