"""Counts what ended on a worker by task name, and adds it to the minute, now and then.

How long tasks waited is sampled: of some that come with one exchange, a few times per
second, the envelope says since when, and the server says when they were taken. So no
task costs more for it. A worker samples when it renews its lease; a process that runs
brief tasks exchanges more often than that, and says how often is enough.

The runner appends to `ended`, the loop of a worker or the slice of such a process folds
it and takes it away: no thread waits for another. It is written when what has run is
reported: one script every few seconds, however many tasks ended, and none if nothing
did. Numbers that cannot be written are dropped: people look at them, and no task
depends on them.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence

from workstealing._logs import BackgroundLogger
from workstealing.clock import Clock
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import BadEnvelope, RedisError, UnknownEnvelope
from workstealing.queue.keys import QueueKeys
from workstealing.queue.minute_calls import (
    BOUNDS_MS,
    NUMBERS,
    RUN_NUMBERS,
    WAIT_BOUNDS_MS,
)
from workstealing.queue.steps import Flow, ask
from workstealing.queue.worker_calls import record_minute
from workstealing.tasks.attempt import Delivery
from workstealing.tasks.envelope import Envelope

__all__ = ("MinuteRecorder",)

logger = BackgroundLogger(__name__)

_EVERY_SECONDS = 5.0
_NS = 1_000_000
# Tasks of one exchange whose waits are sampled, and how long their envelopes may be.
_SAMPLE = 8
_LONGEST = 64 * 1024
# Names of which waits are held: others may write envelopes, too, and what is taken may
# end elsewhere. The oldest makes room.
_MOST_NAMES = 100


class MinuteRecorder:
    """Records what ended on one worker.

    Args:
        where: returns the keys of the shard that the worker is in.
        ended: name, nanoseconds, and whether it failed; it is taken away.
        clock: when it was last recorded.
        sample_every: seconds from one sample of waits to the next, at least.
    """

    def __init__(
        self,
        where: Callable[[], QueueKeys],
        ended: deque[tuple[str, int, bool]],
        clock: Clock,
        *,
        sample_every: float = 0.0,
    ) -> None:
        self._where = where
        self._ended = ended
        self._clock = clock
        self._sample_every = sample_every
        self._recorded_at = self._sampled_at = -math.inf
        self._waits: dict[str, list[int]] = {}

    def sample_waits(self, tasks: Sequence[Delivery], taken_ms: int) -> None:
        """Note how long some of the tasks had waited that a worker has just taken.

        That is since they were submitted or due; of later attempts nobody knows it.
        """
        now = self._clock.monotonic()
        if not tasks or now - self._sampled_at < self._sample_every:
            return
        self._sampled_at = now
        for task in tasks[:: len(tasks) // _SAMPLE + 1]:
            if task.attempt > 1 or len(task.envelope) > _LONGEST:
                continue
            try:
                envelope = Envelope.read(task.envelope)
            except (BadEnvelope, UnknownEnvelope):
                continue
            since_ms = envelope.due or envelope.at
            name = f"{envelope.name}@{envelope.version}"
            # Those of a name are told when one of it has ended.
            if since_ms:
                if name not in self._waits and len(self._waits) >= _MOST_NAMES:
                    del self._waits[next(iter(self._waits))]
                # The clock of a producer may be ahead of that of the server.
                waited_ms = max(0, taken_ms - since_ms)
                numbers = self._waits.setdefault(name, [0] * (NUMBERS - RUN_NUMBERS))
                numbers[0] += waited_ms
                numbers[1 + bisect_right(WAIT_BOUNDS_MS, waited_ms)] += 1

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
            call = record_minute(self._where(), int(time.time() // 60), counts)
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
                numbers = found[ability] = [0] * RUN_NUMBERS
            took_ns = max(0, took_ns)
            numbers[is_failed] += 1
            numbers[2] += took_ns
            numbers[3 + bisect_right(BOUNDS_MS, took_ns / _NS)] += 1
        for numbers in found.values():
            # At the end: many quick ones make a millisecond, too.
            numbers[2] //= _NS
        for ability in found.keys() & self._waits.keys():
            found[ability] += self._waits.pop(ability)
        return found
