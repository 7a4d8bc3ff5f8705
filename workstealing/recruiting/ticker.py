"""Side work for hosts without traffic: a thread that runs a slice every few seconds.

Start and stop are safe at any time and in any order. A forked child has no ticker:
start one there, for instance in a setup function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread, current_thread
from types import TracebackType

from workstealing.recruiting.pace import Every, checked_interval

__all__ = ("Ticker",)

logger = logging.getLogger(__name__)


class Ticker:
    """A daemon thread that runs a slice every few seconds."""

    def __init__(self, run_now: Callable[[], object], every: Every) -> None:
        self._run_now = run_now
        self._every = checked_interval(every)
        self._stopping = Event()
        self._thread: Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread runs, in this process."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Ticker:
        """Start the thread, unless it runs."""
        if not self.is_running or self._stopping.is_set():
            self._stopping = Event()
            self._thread = Thread(
                target=self._run,
                args=(self._stopping,),
                name="workstealing-ticker",
                daemon=True,
            )
            self._thread.start()
        return self

    def stop(self, timeout: float | None = 5.0) -> None:
        """End the thread after the slice in flight, and wait for that."""
        self._stopping.set()
        thread = self._thread
        # A job may stop the ticker that it runs on, which cannot wait for itself.
        if thread is not None and thread is not current_thread() and self.is_running:
            thread.join(timeout)

    def __enter__(self) -> Ticker:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self, stopping: Event) -> None:
        while not stopping.wait(self._every):
            try:
                self._run_now()
            except Exception:
                logger.exception("a slice of side work failed; the ticker goes on")
