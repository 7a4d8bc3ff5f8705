"""The recruiter for asyncio: the same lottery and protections, awaited.

A coroutine job is cancelled at the end of its slice's time, so a hanging await cannot
hold its host up. A plain function runs in a thread, which cannot be cancelled: the host
goes on at the deadline, and the job counts as busy until the thread is done. So does a
coroutine that swallows its cancellation.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial, wraps
from threading import Event
from typing import Any, ClassVar, NamedTuple, ParamSpec, TypeVar

from workstealing._printing import escaping_logger
from workstealing.errors import ConfigurationError
from workstealing.recruiting.core import RecruiterCore
from workstealing.recruiting.job import Duty, Every, checked_interval
from workstealing.recruiting.slice import Slice, time_left
from workstealing.telemetry.events import Outcome

__all__ = ("AsyncRecruiter", "AsyncTicker")

logger = escaping_logger(__name__)

# What a coroutine gets to clean up in after its time.
_CANCEL_SECONDS = 0.01

P = ParamSpec("P")
T = TypeVar("T")


class AsyncRecruiter(RecruiterCore):
    """Recruits tasks with a spare moment; see `Recruiter` for the arguments."""

    _takes_coroutines: ClassVar[bool] = True
    # Raised when the host is cancelled or its coroutine is closed. If a job raises one
    # of these, `_value` makes it an ordinary error first.
    _passing: ClassVar[tuple[type[BaseException], ...]] = (
        asyncio.CancelledError,
        GeneratorExit,
    )

    async def enlist(
        self, spare: float | None = None, rtt: float | None = None
    ) -> Duty:
        """Offer a moment: mostly dismissed at once, now and then recruited.

        Returns `Duty.RECRUITED` if a job did some work now. `Duty.DISMISSED` is the
        normal case: no job was drawn, or the one that was had nothing to do, failed, or
        was held back to protect the host (`stats()` has a count of each).

        Args:
            spare: how many seconds the caller can spare, if less than the deadline.
            rtt: seconds that the caller's last round trip to the store took; the store
                gate goes by a sample of these.
        """
        for dismissed in self._stride:
            return dismissed
        return await self._recruit(spare, rtt)

    async def run_now(self, name: str | None = None) -> Outcome | None:
        """Run a slice now, of the named job or of the one drawn longest ago.

        For callers that have the time: no lottery, no budget. Returns how it ended, or
        why it was not begun; None if no job is installed.
        """
        await self._run_setups()
        begun = self._slice_now(name)
        if isinstance(begun, Slice):
            await self._run_slice(begun)
            return begun.outcome
        return begun

    def ticker(self, every: Every = 5.0) -> AsyncTicker:
        """Return a task, to be started, that calls `run_now()` repeatedly.

        For hosts without traffic: jobs get their slices at night, too.
        """
        return AsyncTicker(self.run_now, every)

    def enlists(self, function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """Enlist each time after the decorated coroutine function has returned."""
        if not inspect.iscoroutinefunction(function):
            raise ConfigurationError(
                f"{function!r} is not a coroutine function: use Recruiter.enlists"
            )

        @wraps(function)
        async def enlisting(*args: P.args, **kwargs: P.kwargs) -> T:
            result = await function(*args, **kwargs)
            await self.enlist()
            return result

        return enlisting

    @asynccontextmanager
    async def enlisting(self) -> AsyncIterator[None]:
        """Enlist after the block, unless it raises."""
        yield
        await self.enlist()

    async def hook(self, *_: object, **__: object) -> None:
        """Enlist, whatever a framework passes to its hooks."""
        await self.enlist()

    async def _recruit(self, spare: float | None, rtt: float | None) -> Duty:
        try:
            if self._setups.due_at is not None:
                await self._run_setups()
            drawn = self._draw_slice(spare, rtt)
            return Duty.DISMISSED if drawn is None else await self._run_slice(drawn)
        except BaseException as error:  # noqa: BLE001 - a stop request passes
            self._end_fault(error)
            return Duty.DISMISSED

    async def _run_slice(self, drawn: Slice) -> Duty:
        try:
            with drawn:
                while drawn.goes_on(await _run_round(drawn)):
                    pass
        finally:
            self._end_slice(drawn)
        return drawn.duty

    async def _run_setups(self) -> None:
        functions = self._setups_due()
        if not functions:
            return
        try:
            for function in functions:
                with self._setting_up(function):
                    answer = function(self)
                    if inspect.isawaitable(answer):
                        await _apart(answer)
        finally:
            self._end_setups()


class AsyncTicker:
    """A task that runs a slice every few seconds, for hosts without traffic."""

    def __init__(self, run_now: Callable[[], Awaitable[object]], every: Every) -> None:
        self._run_now = run_now
        self._every = checked_interval(every)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the task runs."""
        return self._task is not None and not self._task.done()

    def start(self) -> AsyncTicker:
        """Start the task, unless it runs; needs a running event loop."""
        if not self.is_running:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def stop(self) -> None:
        """End the task at once, and cancel the slice in flight."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> AsyncTicker:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._run_now()
            except Exception:
                # A user's filter may raise, too.
                with suppress(Exception):
                    logger.exception(
                        "a slice of side work failed; the ticker continues"
                    )


async def _run_round(drawn: Slice) -> Any:
    """Call the job once, apart from the host, which waits no longer than the deadline.

    A coroutine is a task of its own: if it swallows its cancellation it is left behind,
    like a thread, and its job is busy until it ends.
    """
    job, limit = drawn.job, None if drawn.deadline is None else time_left()
    done = job.begin_apart()
    running: asyncio.Future[_Ended]
    if job.is_coroutine:
        running = asyncio.ensure_future(_awaited(job.recruited, done))
    else:
        run = partial(copy_context().run, _called, job.recruited, done)
        try:
            running = asyncio.get_running_loop().run_in_executor(None, run)
        except RuntimeError:
            # At a limit of threads, or after the executor was shut down.
            done.set()
            raise
    # What is cancelled before it begins does not reach its end.
    running.add_done_callback(lambda _: done.set())
    try:
        await asyncio.wait((running,), timeout=limit)
    except BaseException as error:
        # The host itself is cancelled, or closed, when nothing can be awaited.
        if job.is_coroutine:
            # Its loop may be closed by now.
            with suppress(RuntimeError):
                running.cancel()
            if isinstance(error, asyncio.CancelledError):
                await asyncio.wait((running,), timeout=_CANCEL_SECONDS)
        raise
    if not running.done():
        if job.is_coroutine:
            running.cancel()
            await asyncio.wait((running,), timeout=_CANCEL_SECONDS)
        _check_stopped(running, limit)
    return _value(running)


async def _apart(awaitable: Awaitable[Any]) -> None:
    """Await as a task of its own, whose cancellation is not that of the host."""
    running = asyncio.ensure_future(_awaited(lambda: awaitable, Event()))
    try:
        await asyncio.wait((running,))
    except BaseException:
        with suppress(RuntimeError):
            running.cancel()
        raise
    _value(running)


class _Ended(NamedTuple):
    """What a job returned, or what it raised.

    As a value, for not everything can be raised through a future: `SystemExit` would
    end the event loop, and `StopIteration` leave the future pending for ever.
    """

    value: Any
    error: BaseException | None


async def _awaited(function: Callable[[], Any], done: Event) -> _Ended:
    try:
        return _Ended(await function(), None)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised in the slice
        return _Ended(None, error)
    finally:
        done.set()


def _called(function: Callable[[], Any], done: Event) -> _Ended:
    try:
        return _Ended(function(), None)
    except BaseException as error:  # noqa: BLE001 - raised in the slice
        return _Ended(None, error)
    finally:
        done.set()


def _check_stopped(running: asyncio.Future[_Ended], limit: float | None) -> None:
    if not running.done():
        raise TimeoutError(
            f"it was still running after its {limit:.3g} s, and its host went on; the"
            " job is busy until it ends. Let it do less in a slice, and do not swallow"
            " the cancellation of a coroutine"
        )
    if running.cancelled():
        raise TimeoutError(f"it was cancelled after its {limit:.3g} s")


def _value(running: asyncio.Future[_Ended]) -> Any:
    if running.cancelled():
        raise RuntimeError("it was cancelled, but not by its host")
    value, error = running.result()
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        # From the host they would mean that the host is to stop.
        raise RuntimeError(f"it raised {error!r}") from error
    if error is not None:
        raise error
    return value
