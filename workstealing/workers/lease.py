"""The lease of a worker, as far as the worker itself knows of it.

While it lasts, nobody else takes the tasks that the worker holds. Redis decides when it
ends; a worker that has not heard of a renewal for that long assumes that it has lost.
"""

from __future__ import annotations

from workstealing.clock import Clock

__all__ = ("Lease",)


class Lease:
    """When Redis last renewed the lease of a worker."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.seconds = seconds
        self._clock = clock
        self._renewed_at = clock.monotonic()
        self._worth_at = self._renewed_at

    def renewed(self, at: float | None = None) -> None:
        """Note a reply that renewed it; one that only answers is no sign of life.

        A reply that was not read at once renewed it *at* an earlier time.
        """
        now = self._clock.monotonic() if at is None else at
        self._renewed_at = max(self._renewed_at, now)
        self._worth_at = self._renewed_at + self.renew_seconds / 4

    @property
    def silence(self) -> float:
        """Seconds since Redis renewed it last."""
        return self._clock.monotonic() - self._renewed_at

    @property
    def renew_seconds(self) -> float:
        """How often it is to be renewed, which also brings cancellations."""
        return min(1.0, self.seconds / 3)

    @property
    def is_worth_renewing(self) -> bool:
        """Whether an exchange that takes place anyway is to renew it, too."""
        return self._clock.monotonic() >= self._worth_at

    @property
    def is_lost(self) -> bool:
        """Whether other workers may have the tasks by now."""
        return self.silence >= self.seconds
