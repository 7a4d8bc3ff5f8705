"""A pool of threads that share their work by stealing; no Redis, no other package.

Each worker has a deque of its own. Work that is given from outside is spread; work that
is given by work goes to the deque of its worker; whoever has nothing steals from the
others. So short and long work balance by themselves.

Work that was taken in is run once, or reported as not begun, or discarded on request;
nothing is dropped in silence, whatever the pool is scaled to meanwhile. What runs can
be asked to stop, not forced: see `interrupting`. A forked child has an empty, stopped
pool; the end of the interpreter waits a few seconds for what is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, wait
from typing import Any, TypeVar
from weakref import finalize

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import ConfigurationError, PoolFull
from workstealing.pool.crew import Crew
from workstealing.pool.member import member_here, works_of
from workstealing.pool.reports import PoolStats, StopReport
from workstealing.pool.scaling import Autoscale, checked_number, checked_seconds
from workstealing.pool.work import Work

__all__ = ("Pool",)

T = TypeVar("T")

_numbers = itertools.count(1)


class Pool(Executor):
    """An in-process pool, and a `concurrent.futures.Executor`.

    Args:
        workers: how many threads work.
        buffer: how much work may wait.
        autoscale: adapt the number of workers; None leaves it as it is.
        patience: seconds that giving work waits for room in a full buffer, before it
            raises `PoolFull`. None waits as long as it takes, 0 not at all.
        name: names the threads and begins the ids of the work.
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
        patience: float | None = None,
        name: str | None = None,
        chance: Chance = SYSTEM_CHANCE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        checked_number(workers, "workers")
        checked_number(buffer, "buffer")
        _check_rule(autoscale)
        self.patience = patience
        self._crew = Crew(name or f"pool-{next(_numbers)}", buffer, chance, clock)
        # Threads know the crew only: a pool that nobody holds ends when it is empty.
        finalize(self, self._crew.abandon).atexit = False
        self._crew.resize(workers)
        self.autoscale = autoscale

    def execute(
        self, function: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> Work[T]:
        """Give one call to the pool.

        Raises:
            PoolFull: the buffer stayed full for longer than `patience`.
            PoolStopped: the pool was stopped.
        """
        return self._give(self._patience, function, args, kwargs)

    def execute_within(
        self,
        seconds: float | None,
        function: Callable[..., T],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Work[T]:
        """Give one call, with a patience of its own."""
        return self._give(_checked_patience(seconds), function, args, kwargs)

    def execute_many(
        self, function: Callable[..., T], /, *iterables: Iterable[Any]
    ) -> list[Work[T]]:
        """Give a call for each of the items, taken side by side as `map` does.

        If the buffer stays full for longer than `patience`, what was given by then is
        in `PoolFull.given`.
        """
        works: list[Work[T]] = []
        for args in zip(*iterables, strict=False):
            try:
                works.append(self._give(self._patience, function, args, {}))
            except PoolFull as error:
                error.given = tuple(works)
                raise
        return works

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Work[T]:
        """Give one call, in the words of `concurrent.futures`."""
        return self._give(self._patience, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work, do all that waits, and end.

        Args:
            wait: return when it is all over.
            cancel_futures: discard what waits.
        """
        self._crew.close()
        if cancel_futures:
            self._crew.shielded(self._take_out_all)
        if wait:
            self._crew.join(None)

    def stop(self, hot: bool = False, timeout: float | None = 25.0) -> StopReport:
        """Take no more work, let what runs finish, report what was not begun.

        Args:
            hot: also interrupt what runs.
            timeout: seconds to wait for what runs; None waits for ever. May be called
                again for what is left.
        """
        return self._crew.shielded(self._stop, hot, checked_seconds(timeout, "timeout"))

    def scale(
        self, number: int, hot: bool = False, timeout: float | None = 1.0
    ) -> StopReport:
        """Have that many workers from now on.

        Those who leave finish what they are at, and what waits for them goes to others.

        Args:
            number: how many.
            hot: also interrupt what those who leave are at.
            timeout: seconds to wait for what was interrupted.
        """
        checked_number(number, "workers")
        seconds = checked_seconds(timeout, "timeout")
        return self._crew.shielded(self._scale, number, hot, seconds)

    def discard(
        self, ids: Iterable[str], hot: bool = False, timeout: float | None = 1.0
    ) -> StopReport:
        """Take work out that waits; with *hot*, also interrupt it where it runs.

        Args:
            ids: the `id` of each piece of work.
            hot: also interrupt what runs.
            timeout: seconds to wait for what was interrupted.
        """
        if isinstance(ids, str):
            raise ConfigurationError(f"discard() takes several ids: [{ids!r}]")
        seconds = checked_seconds(timeout, "timeout")
        return self._crew.shielded(self._discard, tuple(ids), hot, seconds)

    def stats(self) -> PoolStats:
        """Count workers and work."""
        crew = self._crew
        return PoolStats(
            active=sum(bool(member.works) for member in crew.everyone()),
            total=crew.total,
            waiting=len(crew.buffer),
            stolen=crew.deques.stolen,
        )

    @property
    def is_idle(self) -> bool:
        """Whether all deques are empty and nothing is in flight."""
        return self._crew.is_quiet

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until the pool is idle; False if it was not in time."""
        if member_here(self._crew) is not None:
            raise ConfigurationError(
                "a pool is not idle while its own work waits for that: wait outside"
            )
        return self._crew.wait_until_quiet(checked_seconds(timeout, "timeout"))

    @property
    def name(self) -> str:
        """Names the threads and begins the ids of the work."""
        return self._crew.name

    @property
    def workers(self) -> int:
        """How many workers there are; to set it is to `scale()`."""
        return self._crew.total

    @workers.setter
    def workers(self, number: int) -> None:
        self.scale(number)

    @property
    def buffer(self) -> int:
        """How much work may wait; can be set."""
        return self._crew.buffer.limit

    @buffer.setter
    def buffer(self, number: int) -> None:
        self._crew.buffer.limit = checked_number(number, "buffer")

    @property
    def autoscale(self) -> Autoscale | None:
        """How the number of workers is adapted; can be set."""
        return self._crew.autoscale

    @autoscale.setter
    def autoscale(self, rule: Autoscale | None) -> None:
        _check_rule(rule)
        self._crew.autoscale = rule

    @property
    def patience(self) -> float | None:
        """How long giving work waits for room; can be set."""
        return self._patience

    @patience.setter
    def patience(self, seconds: float | None) -> None:
        self._patience = _checked_patience(seconds)

    def _give(
        self,
        patience: float | None,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Work[T]:
        if not callable(function):
            raise ConfigurationError(f"{function!r} cannot be called")
        work = Work(self._crew, function, args, kwargs)
        self._crew.give(work, patience)
        return work

    def _take_out_all(self) -> list[Work[Any]]:
        works = self._crew.buffer.claim_all()
        self._crew.deques.drain()
        for work in works:
            work.end_not_begun()
        self._crew.close()
        self._crew.tell_if_quiet()
        return works

    def _stop(self, hot: bool, timeout: float | None) -> StopReport:
        crew = self._crew
        crew.close()
        not_begun = self._take_out_all()
        crew.send_home()
        running = works_of(crew.everyone())
        if hot:
            _interrupt(running)
        crew.join(timeout)
        return StopReport.of(running, not_begun=not_begun)

    def _scale(self, number: int, hot: bool, timeout: float | None) -> StopReport:
        running = works_of(self._crew.resize(number))
        if hot:
            self._interrupt_and_wait(running, timeout)
        return StopReport.of(running)

    def _discard(
        self, ids: tuple[str, ...], hot: bool, timeout: float | None
    ) -> StopReport:
        crew = self._crew
        not_begun: list[Work[Any]] = []
        running: list[Work[Any]] = []
        unknown: list[str] = []
        for work_id in ids:
            work = crew.buffer.find(work_id)
            if work is not None and crew.withdraw(work):
                not_begun.append(work)
                continue
            at = [work for work in works_of(crew.everyone()) if work.id == work_id]
            running += at
            if not at:
                unknown.append(work_id)
        if hot:
            self._interrupt_and_wait(running, timeout)
        return StopReport.of(running, not_begun=not_begun, unknown=unknown)

    def _interrupt_and_wait(
        self, works: list[Work[Any]], timeout: float | None
    ) -> None:
        _interrupt(works)
        me = member_here(self._crew)
        mine = () if me is None else tuple(me.works)
        wait([work for work in works if work not in mine], timeout)


def _interrupt(works: list[Work[Any]]) -> None:
    for work in works:
        work.interruption.interrupt()


def _checked_patience(seconds: float | None) -> float | None:
    return checked_seconds(seconds, "patience")


def _check_rule(rule: object) -> None:
    if rule is not None and not isinstance(rule, Autoscale):
        raise ConfigurationError(f"autoscale is an Autoscale or None, not {rule!r}")
