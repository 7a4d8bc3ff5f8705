"""Counts what ended on a worker by task name, and adds it to the minute, now and then.

Slots append to the runner's `ended`, the loop folds it and takes it away: no thread
waits for another. It is written behind an exchange that renews the lease: one script
every few seconds, however many tasks ended, and none if nothing did. Numbers that
cannot be written are dropped: people look at them, and no task depends on them.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import deque

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import RedisError
from workstealing.queue.keys import QueueKeys
from workstealing.queue.minute_calls import BOUNDS_MS, NUMBERS
from workstealing.queue.steps import Flow, ask
from workstealing.queue.worker_calls import record_minute

__all__ = ("MinuteRecorder",)

logger = BackgroundLogger(__name__)

_EVERY_SECONDS = 5.0
_NS = 1_000_000


class MinuteRecorder:
    """Records what ended on one worker.

    Args:
        keys: of the queue.
        ended: name, nanoseconds, and whether it failed; it is taken away.
        clock: when it was last recorded.
    """

    def __init__(
        self, keys: QueueKeys, ended: deque[tuple[str, int, bool]], clock: Clock
    ) -> None:
        self._keys = keys
        self._ended = ended
        self._clock = clock
        self._recorded_at = -math.inf

    def record(self, driver: Driver, *, is_last: bool = False) -> None:
        """Record what ended, if something did and the last time is long enough ago."""
        driver.run(self.recording(is_last=is_last))

    def recording(self, *, is_last: bool = False) -> Flow[None]:
        """Do so, as a flow."""
        if not self._ended:
            return
        now = self._clock.monotonic()
        if now - self._recorded_at < _EVERY_SECONDS and not is_last:
            return
        self._recorded_at = now
        counts = self._folded()
        try:
            call = record_minute(self._keys, int(time.time() // 60), counts)
            yield from ask(call)
        except RedisError as error:
            logger.debug("what ended lately was not counted: %r", error)

    def _folded(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        # Others append meanwhile.
        for _ in range(len(self._ended)):
            ability, took_ns, is_failed = self._ended.popleft()
            numbers = found.get(ability)
            if numbers is None:
                numbers = found[ability] = [0] * NUMBERS
            took_ns = max(0, took_ns)
            numbers[is_failed] += 1
            numbers[2] += took_ns
            numbers[3 + bisect_right(BOUNDS_MS, took_ns / _NS)] += 1
        for numbers in found.values():
            # At the end: many quick ones make a millisecond, too.
            numbers[2] //= _NS
        return found
