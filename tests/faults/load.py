"""A queue in use while something happens to its servers.

A producer repeats what was refused under the same id, somebody waits for results, and a
worker and a pool run the tasks. Before and after a fault a test waits until all of them
get on; at the end it compares what was accepted with what was done.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.errors import RedisError, TaskNotFound
from workstealing.testing import wait_until

__all__ = ("Load",)

_ENOUGH = 300
_ENOUGH_RESULTS = 20
# A failover lasts that long: Sentinels wait, and so do those who lost their server.
_SECONDS = 60


class Load:
    """A producer, one who waits for results, a worker and a pool."""

    def __init__(
        self, name: str, url: str, *, lease: float = 2.0, replicas: int = 0
    ) -> None:
        self.queue = queue = TaskQueue(name, url, lease=lease, replicas=replicas)
        self.runs: Counter[int] = Counter()
        """By number; what was done for the caller is counted in Redis."""
        self.accepted = 0
        """So many numbers, from 0 on."""
        self.refused = 0
        self.results = 0
        """How many the one who waits has got."""
        self.missing: set[int] = set()
        """What it waited for, and Redis did not know."""
        self._is_over = Event()

        @queue.task(name="note")
        def note(number: int) -> int:
            self.runs[number] += 1
            return number

        self._note = note
        self._worker = Worker(queue, pool="alone")
        self._pool = WorkerPool(queue, 2, "threads", name="pool")
        self._producer = Thread(target=self._produce, daemon=True)
        self._waiter = Thread(target=self._wait_for_results, daemon=True)
        self._work = Thread(target=self._worker.run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let all work, and afterwards wait until all that was accepted is done."""
        self._pool.start()
        callers = self._producer, self._waiter
        for thread in (self._work, *callers):
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in callers:
                thread.join(_SECONDS)
            wait_until(self._is_done, _SECONDS, "all to be done")
            self._worker.stop()
            self._work.join(20)
            self._pool.stop()
        assert not any(one.is_alive() for one in (self._work, *callers))

    def wait_for_more(self) -> None:
        """Wait until the producer, the worker, the pool and the waiter get on."""
        done, alone, results = len(self.runs), self._alone, self.results
        pooled, accepted = self._pooled, self.accepted
        for what, has_come in (
            ("submissions", lambda: self.accepted > accepted + _ENOUGH),
            ("runs", lambda: len(self.runs) > done + _ENOUGH),
            ("tasks of the worker", lambda: self._alone > alone),
            ("tasks of the pool", lambda: self._pooled > pooled),
            ("results", lambda: self.results > results + _ENOUGH_RESULTS),
        ):
            wait_until(has_come, _SECONDS, f"more {what}")

    def assert_all_done_once(self) -> None:
        """Compare what was accepted with what was done."""
        counts = self.queue.counts()
        found = counts.stats["done"], counts.outcomes, len(self.runs), self.missing
        assert found == (*[self.accepted] * 3, set()), (found, self.accepted)

    def close(self) -> None:
        """Release the connections of the queue."""
        self.queue.close()

    @property
    def _alone(self) -> int:
        return self._worker.stats.taken

    @property
    def _pooled(self) -> int:
        return self._pool.stats().taken

    def _produce(self) -> None:
        while not self._is_over.is_set():
            self._submit(self.accepted)
            self.accepted += 1

    def _submit(self, number: int) -> None:
        # Also when it is over: what was refused may be in the queue all the same.
        while True:
            try:
                self._note.options(id=f"note-{number}").submit(number)
            except RedisError:
                self.refused += 1
                time.sleep(0.02)
            else:
                return

    def _wait_for_results(self) -> None:
        while not self._is_over.is_set():
            number = self.accepted - 1
            if number < 0:
                time.sleep(0.01)
                continue
            try:
                handle = self.queue.handle(f"note-{number}")
                assert handle.result(timeout=_SECONDS) == number
            except TaskNotFound:
                self.missing.add(number)
            else:
                self.results += 1

    def _is_done(self) -> bool:
        try:
            return self.queue.counts().unfinished == 0
        except RedisError:
            return False
