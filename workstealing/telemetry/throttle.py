"""Logs repeated failures: the first with its traceback, then one line a minute."""

from __future__ import annotations

import logging
from dataclasses import dataclass

__all__ = ("Throttle",)

_QUIET_SECONDS = 60.0
_MOST_SUBJECTS = 1000


@dataclass(slots=True)
class _Past:
    reported_at: float
    unreported: int = 0


class Throttle:
    """Remembers when each subject was last logged, and how many failures since."""

    def __init__(self) -> None:
        self._past: dict[str, _Past] = {}

    def report(
        self, logger: logging.Logger, subject: str, error: BaseException, now: float
    ) -> None:
        """Log a failure with its traceback, or with a count, or only count it."""
        past = self._past.get(subject)
        if past is None or self._is_over(past, now):
            if len(self._past) >= _MOST_SUBJECTS:
                self._past.clear()
            self._past[subject] = _Past(now)
            logger.error("%s failed: %r", subject, error, exc_info=error)
        elif now - past.reported_at < _QUIET_SECONDS:
            past.unreported += 1
        else:
            times = past.unreported + 1
            self._past[subject] = _Past(now)
            logger.error("%s failed %d more times, last with %r", subject, times, error)

    @staticmethod
    def _is_over(past: _Past, now: float) -> bool:
        """Tell whether a minute passed without a failure: the next is news again."""
        return now - past.reported_at >= _QUIET_SECONDS and not past.unreported
