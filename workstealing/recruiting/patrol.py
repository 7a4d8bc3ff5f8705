"""Side work for hosts without traffic: a slice every few seconds, by themselves.

Start and stop are safe at any time and in any order. A forked child has no patrol:
start one there, for instance in a setup function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread, current_thread
from types import TracebackType

from workstealing.recruiting.pacing import Every, interval

__all__ = ("Patrol",)

logger = logging.getLogger(__name__)


class Patrol:
    """A daemon thread that musters every few seconds."""

    def __init__(self, muster: Callable[[], object], every: Every) -> None:
        self._muster = muster
        self._every = interval(every)
        self._stopping = Event()
        self._thread: Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread is at work in this process."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Patrol:
        """Begin, unless it has begun."""
        if not self.is_running or self._stopping.is_set():
            self._stopping = Event()
            self._thread = Thread(
                target=self._walk,
                args=(self._stopping,),
                name="workstealing-patrol",
                daemon=True,
            )
            self._thread.start()
        return self

    def stop(self, timeout: float | None = 5.0) -> None:
        """End after the slice in flight, and wait for that."""
        self._stopping.set()
        thread = self._thread
        # A job may stop the patrol that it runs on: that one cannot wait for itself.
        if thread is not None and thread is not current_thread() and self.is_running:
            thread.join(timeout)

    def __enter__(self) -> Patrol:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _walk(self, stopping: Event) -> None:
        while not stopping.wait(self._every):
            try:
                self._muster()
            except Exception:
                logger.exception("a patrol failed; it goes on")
