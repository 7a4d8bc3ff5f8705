"""Daemon threads that are used again; as many as are needed at once.

Unlike those of an executor they keep no process alive, so one that never comes back is
left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

__all__ = ("SpareThreads",)

_Work = Callable[[], None]
# More than that wait in vain, most of the time.
_MOST_SPARE = 64


class SpareThreads:
    """Runs functions in threads; they must not raise."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spare: list[SimpleQueue[_Work | None]] = []

    def run(self, work: _Work) -> None:
        """Run a function in a thread that is spare, or in a new one."""
        try:
            inbox = self._spare.pop()
        except IndexError:
            inbox = SimpleQueue()
            Thread(
                target=self._live, args=(inbox,), name=self._name, daemon=True
            ).start()
        inbox.put(work)

    def close(self) -> None:
        """End the spare ones."""
        while self._spare:
            self._spare.pop().put(None)

    def _live(self, inbox: SimpleQueue[_Work | None]) -> None:
        while (work := inbox.get()) is not None:
            work()
            del work
            if len(self._spare) >= _MOST_SPARE:
                return
            self._spare.append(inbox)
