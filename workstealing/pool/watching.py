"""A thread that looks after something, when it must, and sleeps in between."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock, Thread

__all__ = ("Watch",)


class Watch:
    """Calls *look* again and again.

    It returns the seconds until the next look, or None: then nothing happens until
    the next `nudge()`.
    """

    def __init__(self, look: Callable[[], float | None], name: str) -> None:
        self._look = look
        self._change = Condition(Lock())
        self._is_dozing = False
        self._is_over = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def nudge(self) -> None:
        """There is something to look at. Costs next to nothing if it is awake."""
        if self._is_dozing:
            with self._change:
                self._is_dozing = False
                self._change.notify()

    def stop(self) -> None:
        """Look no more; does not wait for a look that is under way."""
        with self._change:
            self._is_over = True
            self._change.notify()

    def _run(self) -> None:
        while True:
            with self._change:
                # Before it looks: who comes later will nudge.
                self._is_dozing = True
            seconds = self._look()
            with self._change:
                if seconds is None:
                    self._change.wait_for(lambda: self._is_over or not self._is_dozing)
                else:
                    self._is_dozing = False
                    self._change.wait_for(lambda: self._is_over, seconds)
                if self._is_over:
                    return
