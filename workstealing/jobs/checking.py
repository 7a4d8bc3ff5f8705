"""Checks the numbers that users give to jobs, when they give them."""

from __future__ import annotations

from datetime import timedelta

from workstealing.errors import ConfigurationError
from workstealing.tasks.checking import checked_seconds

__all__ = ("checked_batch", "milliseconds")


def checked_batch(batch: int) -> int:
    """Refuse a batch that is empty, or too large for one script."""
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= 1000:
        raise ConfigurationError(f"batch must be 1 to 1000 items, not {batch!r}")
    return batch


def milliseconds(duration: float | timedelta, what: str = "ttl") -> int:
    """Return a positive duration in whole milliseconds, at least one."""
    return max(1, round(checked_seconds(duration, what) * 1000))
