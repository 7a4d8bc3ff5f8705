"""Checks the numbers that users give to jobs, when they give them."""

from __future__ import annotations

import math
from datetime import timedelta

from workstealing.errors import ConfigurationError

__all__ = ("checked_batch", "milliseconds")


def checked_batch(batch: int) -> int:
    """Refuse a batch that is empty, or too large for one script."""
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= 1000:
        raise ConfigurationError(f"batch must be 1 to 1000 items, not {batch!r}")
    return batch


def milliseconds(duration: float | timedelta, what: str = "ttl") -> int:
    """Return a positive duration in whole milliseconds, at least one."""
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, (int, float)):
        raise ConfigurationError(f"{what} must be seconds, not {duration!r}")
    if not math.isfinite(duration) or duration <= 0:
        raise ConfigurationError(f"{what} must be above 0 seconds, not {duration!r}")
    return max(1, round(duration * 1000))
