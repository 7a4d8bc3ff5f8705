"""A condition that costs little while nobody waits for it.

`threading.Condition` makes nine objects and enters by Python code. Most work is over
before anybody waits for it, so this is a plain re-entrant lock, which makes a condition
when the first one waits.
"""

from __future__ import annotations

from _thread import RLock
from threading import Condition

__all__ = ("Monitor",)


class Monitor(RLock):  # type: ignore[misc]  # final in typeshed only
    """What `concurrent.futures.Future` asks of a `threading.Condition`."""

    _condition: Condition | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Let go of the lock, wait to be notified, take the lock again."""
        if self._condition is None:
            self._condition = Condition(self)
        return self._condition.wait(timeout)

    def notify(self, number: int = 1) -> None:
        """Wake some of those who wait; the caller holds the lock."""
        if self._condition is not None:
            self._condition.notify(number)

    def notify_all(self) -> None:
        """Wake all who wait; the caller holds the lock."""
        if self._condition is not None:
            self._condition.notify_all()
