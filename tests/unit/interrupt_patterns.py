"""Tasks that take locks of others, over and over, for `test_interrupt` to interrupt.

Standard library only, so that it also runs where nothing is installed:
`PYTHONPATH=. python tests/unit/interrupt_patterns.py 3000` interrupts each of them
3,000 times and says what it found.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import queue
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

from workstealing._interrupt import Interruptible
from workstealing.errors import StopWork

MOST_SECONDS = 30.0


class PythonStream:
    """A stream in Python, with a lock of its own, as some consoles have it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.size = 0

    def write(self, text: str) -> None:
        self.lock.acquire()
        try:
            self.size += len(text)
        finally:
            self.lock.release()

    def flush(self) -> None:
        with self.lock:
            self.size = 0


class Pattern:
    """What a thread does for ever, and what must be free afterwards."""

    def work(self) -> None:
        raise NotImplementedError

    def locks(self) -> list[Any]:
        return []

    def is_whole(self) -> bool:
        return all(_is_free(lock) for lock in self.locks())

    def close(self) -> None:
        pass


def _is_free(lock: Any) -> bool:
    """Tell whether another thread than this one could take the lock."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


class _Logs(Pattern):
    def __init__(self, handler: logging.Handler, locks: list[Any]) -> None:
        self._handler = handler
        self._locks = locks
        self._logger = logging.Logger("patterns")
        self._logger.addHandler(handler)

    def work(self) -> None:
        while True:
            self._logger.info("a line with %s", "an argument")

    def locks(self) -> list[Any]:
        return [self._handler.lock, logging._lock, *self._locks]  # type: ignore[attr-defined]

    def close(self) -> None:
        self._handler.close()


class LogsToFile(_Logs):
    """Lets other threads run whenever it writes, and is nearly always found there."""

    def __init__(self) -> None:
        self._file = open(os.devnull, "w")  # noqa: SIM115
        super().__init__(logging.StreamHandler(self._file), [])

    def close(self) -> None:
        super().close()
        self._file.close()


class LogsToPython(_Logs):
    def __init__(self) -> None:
        stream = PythonStream()
        super().__init__(logging.StreamHandler(stream), [stream.lock])


class LogsAndGetsLoggers(_Logs):
    def __init__(self) -> None:
        super().__init__(logging.StreamHandler(io.StringIO()), [])
        self._count = 0

    def work(self) -> None:
        stream = self._handler.stream  # type: ignore[attr-defined]
        while True:
            self._count += 1
            logger = logging.getLogger(f"patterns.{self._count % 50}")
            logger.isEnabledFor(self._count % 30)
            self._logger.info("a line")
            stream.seek(0)
            stream.truncate()


class LogsToFullDisk(_Logs):
    """A log whose writes fail, after having let other threads run."""

    def __init__(self) -> None:
        self._file = open("/dev/full", "w")  # noqa: SIM115
        super().__init__(logging.StreamHandler(self._file), [])
        self._handler.handleError = lambda record: None  # type: ignore[method-assign]

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError):
            self._file.close()


class TakesLock(Pattern):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def work(self) -> None:
        while True:
            with self._lock:
                self._count += 1

    def locks(self) -> list[Any]:
        return [self._lock]


class TakesLockAndSleeps(TakesLock):
    def work(self) -> None:
        while True:
            with self._lock:
                time.sleep(0.0001)


class AcquiresBeforeTry(TakesLock):
    def work(self) -> None:
        lock = self._lock
        while True:
            lock.acquire()
            try:
                self._count += 1
            finally:
                lock.release()


class TakesCondition(Pattern):
    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0

    def work(self) -> None:
        while True:
            with self._condition:
                abs(self._count)
                self._condition.notify_all()

    def locks(self) -> list[Any]:
        return [self._condition]


class WaitsForCondition(TakesCondition):
    def work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait(0.0005)


class WaitsForEvent(Pattern):
    def __init__(self) -> None:
        self._event = threading.Event()

    def work(self) -> None:
        while not self._event.wait(0.0005):
            pass

    def locks(self) -> list[Any]:
        return [self._event._cond]  # type: ignore[attr-defined]


class WaitsForFuture(Pattern):
    def __init__(self) -> None:
        self._future: Future[None] = Future()

    def work(self) -> None:
        while True:
            with contextlib.suppress(FutureTimeout):
                self._future.result(0.0005)

    def locks(self) -> list[Any]:
        return [self._future._condition]


class PutsAndGets(Pattern):
    def __init__(self) -> None:
        self._queue: queue.Queue[int] = queue.Queue()

    def work(self) -> None:
        while True:
            self._queue.put(1)
            self._queue.get()
            self._queue.task_done()

    def locks(self) -> list[Any]:
        return [self._queue.mutex]


class GetsFromEmpty(PutsAndGets):
    def work(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                self._queue.get(timeout=0.0005)


class Imports(Pattern):
    def work(self) -> None:
        while True:
            for name in ("colorsys", "this_is_no_module"):
                sys.modules.pop(name, None)
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            time.sleep(0.0005)

    def is_whole(self) -> bool:
        done = []

        def work() -> None:
            import colorsys

            done.append(colorsys)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(10)
        return bool(done)


class WritesFiles(Pattern):
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "file"

    def work(self) -> None:
        while True:
            with open(self._path, "w") as file:
                file.write("text")

    def close(self) -> None:
        self._folder.cleanup()


class UsesContextManager(Pattern):
    """The lock is taken between the beginning of the generator and its `try`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        self._lock.acquire()
        abs(1)
        try:
            yield
        finally:
            abs(1)
            self._lock.release()

    def work(self) -> None:
        while True:
            with self._held():
                abs(1)

    def locks(self) -> list[Any]:
        return [self._lock]


class Decorated(UsesContextManager):
    def work(self) -> None:
        @self._held()
        def inner() -> None:
            for _ in range(100):
                abs(1)

        while True:
            inner()


class UsesLibraries(Pattern):
    def work(self) -> None:
        values = {"a": [1, 2, {"b": None}]}
        while True:
            json.loads(json.dumps(values, indent=1))
            re.sub("a+", lambda found: found[0], "baab")


class Spins(Pattern):
    def work(self) -> None:
        while True:
            pass


class Sleeps(Pattern):
    def work(self) -> None:
        while True:
            time.sleep(0.0005)
            try:
                abs(1)
            finally:
                abs(2)


PATTERNS: list[type[Pattern]] = [
    LogsToFile,
    LogsToPython,
    LogsAndGetsLoggers,
    *([LogsToFullDisk] if Path("/dev/full").exists() else []),
    TakesLock,
    TakesLockAndSleeps,
    AcquiresBeforeTry,
    TakesCondition,
    WaitsForCondition,
    WaitsForEvent,
    WaitsForFuture,
    PutsAndGets,
    GetsFromEmpty,
    Imports,
    WritesFiles,
    UsesContextManager,
    Decorated,
    UsesLibraries,
    Spins,
    Sleeps,
]


class Found:
    """What came of many interruptions."""

    def __init__(self) -> None:
        self.asked = 0
        self.interrupted = 0
        self.tries = 0
        self.longest = 0.0
        self.others: list[BaseException] = []
        self.is_whole = True

    @property
    def is_good(self) -> bool:
        """Every thread was interrupted, and nothing was left behind."""
        return self.is_whole and self.interrupted == self.asked and not self.others


def interrupt_often(kind: type[Pattern], times: int) -> Found:
    """Interrupt the pattern that often, and look at its locks each time."""
    found, pattern = Found(), kind()
    for _ in range(times):
        _interrupt_once(pattern, found)
        # A fresh thread each time is dear; the lock is looked at in this one first.
        if not _looks_whole(pattern):
            found.is_whole = False
        if not found.is_good:
            return found
    found.is_whole = pattern.is_whole()
    pattern.close()
    return found


def _looks_whole(pattern: Pattern) -> bool:
    for lock in pattern.locks():
        if not lock.acquire(blocking=False):
            return False
        lock.release()
    return True


def _interrupt_once(pattern: Pattern, found: Found) -> None:
    call = Interruptible()
    begun, ends = threading.Event(), list[BaseException]()

    def work() -> None:
        begun.set()
        pattern.work()

    def run() -> None:
        try:
            call.call(work)
        except BaseException as end:
            ends.append(end)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    begun.wait()
    found.asked += 1
    begun_at = time.monotonic()
    call.interrupt()
    found.tries += 1
    while thread.is_alive() and time.monotonic() < begun_at + MOST_SECONDS:
        found.tries += not call.deliver()
        thread.join(0.001)
    found.longest = max(found.longest, time.monotonic() - begun_at)
    for end in ends:
        if type(end) is StopWork:
            found.interrupted += 1
        else:
            found.others.append(end)


def _main(times: int, told: Callable[[str], object], names: list[str]) -> int:
    # Threads that never wait are looked at once per switch, so have them switch often.
    sys.setswitchinterval(0.0002)
    are_good = True
    for kind in PATTERNS:
        if names and kind.__name__ not in names:
            continue
        begun_at = time.monotonic()
        found = interrupt_often(kind, times)
        are_good = are_good and found.is_good
        seconds = time.monotonic() - begun_at
        told(
            f"{kind.__name__:20} {'ok' if found.is_good else 'BAD':3} "
            f"asked {found.asked} interrupted {found.interrupted} "
            f"tries each {found.tries / found.asked:.2f} "
            f"longest {found.longest * 1000:.0f} ms in {seconds:.1f} s "
            f"{'' if found.is_whole else 'A LOCK IS HELD'} {found.others or ''}"
        )
    return 0 if are_good else 1


if __name__ == "__main__":
    sys.exit(
        _main(
            int(sys.argv[1]),
            lambda text: sys.stdout.write(text + "\n") and sys.stdout.flush(),
            sys.argv[2:],
        )
    )
