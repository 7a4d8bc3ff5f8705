"""A pool of threads that share their work by stealing; no Redis, no other package.

Each worker has a deque of its own. Work submitted from outside is spread; work that is
submitted by work goes to the deque of its worker; a worker without work steals from the
others. So short and long work balance out.

Accepted work is run once, or reported as not begun, or discarded on request; nothing is
dropped silently, whatever the pool is scaled to meanwhile. Running work can be asked to
stop, not forced: see `workstealing._interrupt`. A forked child has an empty, stopped
pool; the end of the interpreter waits a few seconds for what is left.

For tasks that must survive the process, and for work on many machines, there is
`WorkerPool`; both pools share the names of their methods.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, wait
from threading import Thread
from typing import Any, TypeVar
from weakref import finalize

from workstealing._checks import checked_timeout, checked_whole
from workstealing._interrupt import deliver_until_ended
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import ConfigurationError, PoolFull
from workstealing.pool.autoscale import Autoscale
from workstealing.pool.pool_thread import pool_thread_here, running_work
from workstealing.pool.pool_threads import PoolThreads
from workstealing.pool.work import PoolStats, StopReport, Work

__all__ = ("Pool",)

T = TypeVar("T")

_numbers = itertools.count(1)


class Pool(Executor):
    """An in-process pool, and a `concurrent.futures.Executor`.

    Args:
        workers: how many threads work.
        buffer: how much work may wait.
        autoscale: adapt the number of workers, by its `wait`, `step`, `most` and
            `idle`; None leaves it as it is.
        buffer_timeout: seconds that submitting waits for room in a full buffer before
            it raises `PoolFull`. None waits as long as it takes, 0 not at all.
        name: names the threads and begins the ids of the work.
        initializer: is called in each thread before any work. If it raises, work that
            this thread takes fails with `PoolBroken`.
        chance: draws the victims of thieves.
        clock: where time comes from.

    As a context manager it does all its work and ends.
    """

    def __init__(
        self,
        workers: int = 4,
        buffer: int = 1000,
        autoscale: Autoscale | None = None,
        *,
        buffer_timeout: float | None = None,
        name: str | None = None,
        initializer: Callable[[], object] | None = None,
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        checked_whole(workers, "workers", 1)
        checked_whole(buffer, "buffer", 1)
        _check_autoscale(autoscale)
        if initializer is not None and not callable(initializer):
            raise ConfigurationError(
                f"initializer must be a function, not {initializer!r}"
            )
        self.buffer_timeout = buffer_timeout
        self._threads = PoolThreads(
            name or f"pool-{next(_numbers)}", buffer, initializer, chance, clock
        )
        # Threads do not know the pool: one without references ends when it is empty.
        finalize(self, self._threads.abandon).atexit = False
        self._threads.resize(workers)
        self.autoscale = autoscale

    def execute(
        self, function: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> Work[T]:
        """Submit one call.

        Raises:
            PoolFull: the buffer stayed full for longer than `buffer_timeout`.
            PoolStopped: the pool was stopped.
        """
        return self._submit(self._buffer_timeout, function, args, kwargs)

    def execute_within(
        self,
        seconds: float | None,
        function: Callable[..., T],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Work[T]:
        """Submit one call, with a `buffer_timeout` of its own."""
        return self._submit(checked_timeout(seconds, "seconds"), function, args, kwargs)

    def execute_many(
        self, function: Callable[..., T], /, *iterables: Iterable[Any]
    ) -> list[Work[T]]:
        """Submit a call for each of the items, taken side by side as `map` does.

        If the buffer stays full for longer than `buffer_timeout`, what was submitted by
        then is in `PoolFull.submitted`.
        """
        works: list[Work[T]] = []
        for args in zip(*iterables, strict=False):
            try:
                works.append(self._submit(self._buffer_timeout, function, args, {}))
            except PoolFull as error:
                error.submitted = tuple(works)
                raise
        return works

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Work[T]:
        """Submit one call, by the name that `concurrent.futures` has for it."""
        return self._submit(self._buffer_timeout, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work, do all that waits, and end.

        Args:
            wait: return when all of it is done.
            cancel_futures: discard what waits.
        """
        self._threads.close()
        if cancel_futures:
            self._threads.shielded(self._take_out_all)
        if wait:
            self._threads.join(None)

    def stop(self, *, hot: bool = False, timeout: float | None = 25.0) -> StopReport:
        """Accept no more work, let what runs finish, report what did not begin.

        Args:
            hot: also interrupt what runs.
            timeout: seconds to wait for what runs; None waits without limit. May be
                called again for what is left.
        """
        return self._threads.shielded(self._stop, hot, checked_timeout(timeout))

    def scale(
        self, workers: int, *, hot: bool = False, timeout: float | None = 1.0
    ) -> StopReport:
        """Change the number of workers.

        Those that leave finish what they run, and what waits for them goes to others.

        Args:
            workers: how many.
            hot: also interrupt what the leaving workers run.
            timeout: seconds to wait for what was interrupted.
        """
        checked_whole(workers, "workers", 1)
        seconds = checked_timeout(timeout)
        return self._threads.shielded(self._scale, workers, hot, seconds)

    def discard(
        self, ids: Iterable[str], *, hot: bool = False, timeout: float | None = 1.0
    ) -> StopReport:
        """Take out waiting work; with *hot*, also interrupt it where it runs.

        Args:
            ids: the `id` of each piece of work.
            hot: also interrupt what runs.
            timeout: seconds to wait for what was interrupted.
        """
        if isinstance(ids, str):
            raise ConfigurationError(
                f"discard() takes a list of ids, not a string: write [{ids!r}]"
            )
        seconds = checked_timeout(timeout)
        return self._threads.shielded(self._discard, tuple(ids), hot, seconds)

    def stats(self) -> PoolStats:
        """Count workers and work."""
        threads = self._threads
        return PoolStats(
            workers=threads.total,
            running=sum(bool(thread.works) for thread in threads.alive()),
            waiting=len(threads.waiting),
            stolen=threads.deques.stolen,
        )

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return self._threads.is_idle

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until the pool is idle; False if it was not in time."""
        if pool_thread_here(self._threads) is not None:
            raise ConfigurationError(
                "wait_idle() was called by work of the pool, which would wait for"
                " itself: call it from outside the pool"
            )
        return self._threads.wait_until_idle(checked_timeout(timeout))

    @property
    def name(self) -> str:
        """Names the threads and begins the ids of the work."""
        return self._threads.name

    @property
    def workers(self) -> int:
        """How many workers there are; to set it is to `scale()`."""
        return self._threads.total

    @workers.setter
    def workers(self, number: int) -> None:
        self.scale(number)

    @property
    def buffer(self) -> int:
        """How much work may wait; can be set."""
        return self._threads.waiting.limit

    @buffer.setter
    def buffer(self, number: int) -> None:
        self._threads.waiting.limit = checked_whole(number, "buffer", 1)

    @property
    def autoscale(self) -> Autoscale | None:
        """How the number of workers is adapted; can be set."""
        return self._threads.autoscale

    @autoscale.setter
    def autoscale(self, rule: Autoscale | None) -> None:
        _check_autoscale(rule)
        self._threads.autoscale = rule

    @property
    def buffer_timeout(self) -> float | None:
        """How long submitting waits for room in a full buffer; can be set."""
        return self._buffer_timeout

    @buffer_timeout.setter
    def buffer_timeout(self, seconds: float | None) -> None:
        self._buffer_timeout = checked_timeout(seconds, "buffer_timeout")

    def _submit(
        self,
        timeout: float | None,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Work[T]:
        if not callable(function):
            raise ConfigurationError(
                f"a pool runs functions, not {function!r}: pass something callable"
            )
        work = Work(self._threads, function, args, kwargs)
        self._threads.submit(work, timeout)
        return work

    def _take_out_all(self) -> list[Work[Any]]:
        works = self._threads.waiting.claim_all()
        self._threads.deques.drain()
        for work in works:
            work.end_not_begun()
        self._threads.close()
        self._threads.notify_if_idle()
        return works

    def _stop(self, hot: bool, timeout: float | None) -> StopReport:
        threads = self._threads
        threads.close()
        not_begun = self._take_out_all()
        threads.let_all_leave()
        running = running_work(threads.alive())
        if hot:
            _interrupt(running)
        threads.join(timeout)
        return StopReport.of(running, not_begun=not_begun)

    def _scale(self, workers: int, hot: bool, timeout: float | None) -> StopReport:
        running = running_work(self._threads.resize(workers))
        if hot:
            self._interrupt_and_wait(running, timeout)
        return StopReport.of(running)

    def _discard(
        self, ids: tuple[str, ...], hot: bool, timeout: float | None
    ) -> StopReport:
        threads = self._threads
        not_begun: list[Work[Any]] = []
        running: list[Work[Any]] = []
        unknown: list[str] = []
        for work_id in ids:
            work = threads.waiting.find(work_id)
            if work is not None and threads.withdraw(work):
                not_begun.append(work)
                continue
            found = [w for w in running_work(threads.alive()) if w.id == work_id]
            running += found
            if not found:
                unknown.append(work_id)
        if hot:
            self._interrupt_and_wait(running, timeout)
        return StopReport.of(running, not_begun=not_begun, unknown=unknown)

    def _interrupt_and_wait(
        self, works: list[Work[Any]], timeout: float | None
    ) -> None:
        _interrupt(works)
        me = pool_thread_here(self._threads)
        mine = () if me is None else tuple(me.works)
        wait([work for work in works if work not in mine], timeout)


def _interrupt(works: list[Work[Any]]) -> None:
    calls = [work.interruption for work in works]
    asked = [call for call in calls if call.interrupt() and not call.has_ended]
    if asked:
        name = "workstealing-interrupt"
        Thread(
            target=deliver_until_ended, args=(asked,), name=name, daemon=True
        ).start()


def _check_autoscale(rule: object) -> None:
    if rule is not None and not isinstance(rule, Autoscale):
        raise ConfigurationError(
            f"autoscale must be an Autoscale or None, not {rule!r}"
        )
