"""One worker thread of a pool: it finds work, runs it, and sleeps when there is none.

It looks in its own deque, then steals half of another one, then sleeps until it is
woken. It must claim whatever it finds before it runs it.

Sleeping misses nothing: a thread first adds itself to the sleepers, then looks at the
deques once more, then sleeps; a submitter first puts work into a deque, then wakes a
sleeper. So one of the two always sees the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Lock, Thread, local
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing._printing import escaping_logger
from workstealing.errors import PoolBroken, StopWork, UnknownWorker
from workstealing.pool.work import Work

if TYPE_CHECKING:
    from workstealing.pool.pool_threads import PoolThreads

__all__ = (
    "PoolThread",
    "Sleepers",
    "WakeUp",
    "forget_current_thread",
    "pool_thread_here",
    "running_work",
)

T = TypeVar("T")

_current = local()
logger = escaping_logger(__name__)


def pool_thread_here(threads: PoolThreads) -> PoolThread | None:
    """Return the worker that the caller runs in, if it is one of these."""
    thread: PoolThread | None = getattr(_current, "thread", None)
    return thread if thread is not None and thread.threads is threads else None


def forget_current_thread() -> None:
    """Forget, in a forked child, that the caller runs in a worker."""
    _current.thread = None


def running_work(threads: Iterable[PoolThread]) -> list[Work[Any]]:
    """Return what these workers run, the innermost first."""
    return [work for thread in threads for work in reversed(tuple(thread.works))]


class PoolThread:
    """A worker of a pool."""

    __slots__ = (
        "_problem",
        "is_leaving",
        "number",
        "thread",
        "threads",
        "wake_up",
        "works",
    )

    def __init__(self, threads: PoolThreads, number: int) -> None:
        self.threads = threads
        self.number = number
        self.wake_up = WakeUp(number)
        self.is_leaving = False
        self._problem: BaseException | None = None
        self.works: list[Work[Any]] = []
        """Claimed, or about to be. Several if work runs the work that it waits for."""
        self.thread = Thread(
            target=self._loop, name=f"{threads.name}-{number}", daemon=True
        )

    def shielded(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function; if work is running here, put its interruption off."""
        if not self.works:
            return function(*arguments)
        return self.works[-1].interruption.shielded(function, *arguments)

    def run(self, work: Work[Any]) -> None:
        """Run claimed work, the last of `works`."""
        function = work.function
        if function is None or not work.set_running_or_notify_cancel():
            self.works.pop()
            return
        if self._problem is not None:
            function = partial(_refuse, self.threads.name, self._problem)
        try:
            value = work.interruption.call(function, *work.arguments, **work.keywords)
        except BaseException as error:  # noqa: BLE001 - it is the work's own
            self.works.pop()
            if isinstance(error, StopWork) and work.interruption.asked is not None:
                work.end_interrupted()
            else:
                work.fail(error)
                # The error knows this frame, and the work knows the error.
                del work
        else:
            self.works.pop()
            work.finish(value)

    def _loop(self) -> None:
        _current.thread = self
        self._initialize()
        waiting, works = self.threads.waiting, self.works
        work = None
        try:
            while True:
                found = self._find(has_worked=work is not None)
                # Not kept alive while the thread sleeps.
                work = None
                if found is None:
                    if not self._sleep():
                        return
                    continue
                work = found
                del found
                # Before it is claimed: so it is always here or among what waits.
                works.append(work)
                if waiting.claim(work):
                    self.run(work)
                else:
                    works.pop()
        except UnknownWorker:
            # Told to leave; or the work forked, and the child's pool has no workers.
            return
        finally:
            self.threads.thread_ended(self)

    def _initialize(self) -> None:
        if self.threads.initializer is not None:
            try:
                self.threads.initializer()
            except BaseException as error:
                self._problem = error
                # A filter of the user's may raise; the thread is needed all the same.
                with suppress(Exception):
                    logger.exception("the initializer of %s raised", self.threads.name)

    def _find(self, has_worked: bool) -> Work[Any] | None:
        deques = self.threads.deques
        if self.is_leaving:
            if has_worked:
                deques.done(self.number)
            raise UnknownWorker(f"worker {self.number} leaves")
        work = (deques.done_and_take if has_worked else deques.take)(self.number)
        if work is None:
            stolen = deques.steal(self.number, half=True)
            work = None if stolen is None else stolen.item
        return work

    def _sleep(self) -> bool:
        """Sleep until woken; False if the thread is to end."""
        threads, sleepers = self.threads, self.threads.sleepers
        sleepers.add(self.wake_up)
        is_over = threads.waiting.is_closed and not len(threads.waiting)
        if is_over or self.is_leaving or threads.deques.waiting:
            sleepers.remove(self.wake_up)
            return not is_over
        threads.notify_if_idle()
        if sleepers.sleep(self.wake_up, threads.idle_seconds):
            return True
        return not threads.release_if_spare(self)


def _refuse(pool: str, problem: BaseException, *_: Any, **__: Any) -> None:
    raise PoolBroken(
        f"the initializer of {pool} raised {type(problem).__name__}: {problem}"
    ) from problem


class WakeUp:
    """Wakes one thread."""

    __slots__ = ("_lock", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._lock = Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Wake the thread, now or as soon as it sleeps; twice is the same as once."""
        with suppress(RuntimeError):
            self._lock.release()

    def wait(self, seconds: float | None) -> bool:
        """Sleep until `set()`; False if that many seconds have passed."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)


class Sleepers:
    """The threads without work. The last to fall asleep is the first to be woken.

    So threads that are not needed sleep long enough to be let go.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._wake_ups: list[WakeUp] = []

    def __len__(self) -> int:
        return len(self._wake_ups)

    @property
    def next_up(self) -> int | None:
        """The number of the thread that is probably woken next; a hint."""
        wake_ups = self._wake_ups
        try:
            return wake_ups[-1].number if wake_ups else None
        except IndexError:
            return None

    def add(self, wake_up: WakeUp) -> None:
        """Add a thread; then it looks at the deques again, to `sleep` or `remove`."""
        with self._lock:
            self._wake_ups.append(wake_up)

    def sleep(self, wake_up: WakeUp, seconds: float | None) -> bool:
        """Sleep until woken; False if that many seconds have passed."""
        if not wake_up.wait(seconds):
            self.remove(wake_up)
            return False
        # Only `wake_all_unlocked` leaves it there.
        if wake_up in self._wake_ups:
            with self._lock, suppress(ValueError):
                self._wake_ups.remove(wake_up)
        return True

    def remove(self, wake_up: WakeUp) -> None:
        """Take out a thread that did not sleep after all."""
        with self._lock:
            if wake_up in self._wake_ups:
                self._wake_ups.remove(wake_up)
                return
        # It was set meanwhile.
        wake_up.wait(None)

    def wake_one(self) -> bool:
        """Wake the last to fall asleep; False if all are awake."""
        # Read without the lock: a thread that added itself, and then looked into the
        # deque that the work was put into, did both before.
        if not self._wake_ups:
            return False
        with self._lock:
            if not self._wake_ups:
                return False
            self._wake_ups.pop().set()
            return True

    def wake(self, wake_up: WakeUp) -> None:
        """Wake one in particular, if it sleeps."""
        with self._lock:
            if wake_up in self._wake_ups:
                self._wake_ups.remove(wake_up)
                wake_up.set()

    def wake_all(self) -> None:
        """Wake all of them."""
        with self._lock:
            while self._wake_ups:
                self._wake_ups.pop().set()

    def wake_all_unlocked(self) -> None:
        """Wake all of them, where no lock may be taken."""
        for wake_up in tuple(self._wake_ups):
            wake_up.set()
