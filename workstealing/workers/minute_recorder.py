"""Adds what ended on a worker to the numbers of the minute, now and then.

It rides behind an exchange that renews the lease: one script every few seconds, however
many tasks ended, and none if nothing did. Numbers that cannot be written are dropped:
they are for people who look, and no task depends on them.
"""

from __future__ import annotations

import math
import time

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import RedisError
from workstealing.queue.keys import QueueKeys
from workstealing.queue.minute_calls import record_minute
from workstealing.tasks.minute_tally import MinuteTally

__all__ = ("MinuteRecorder",)

logger = BackgroundLogger(__name__)

_EVERY_SECONDS = 5.0


class MinuteRecorder:
    """Records what ended on one worker.

    Args:
        keys: of the queue.
        tally: what ended; it is taken away.
        clock: when it was last recorded.
    """

    def __init__(self, keys: QueueKeys, tally: MinuteTally, clock: Clock) -> None:
        self._keys = keys
        self._tally = tally
        self._clock = clock
        self._recorded_at = -math.inf

    def record(self, driver: Driver, *, is_last: bool = False) -> None:
        """Record what ended, if something did and the last time is long enough ago."""
        if not self._tally:
            return
        now = self._clock.monotonic()
        if now - self._recorded_at < _EVERY_SECONDS and not is_last:
            return
        self._recorded_at = now
        counts = self._tally.take()
        try:
            driver.call(record_minute(self._keys, int(time.time() // 60), counts))
        except RedisError as error:
            logger.debug("what ended lately was not counted: %r", error)
