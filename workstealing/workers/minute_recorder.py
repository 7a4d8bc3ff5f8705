"""Counts the tasks that ended on a worker by name, and adds them to the current minute.

How long tasks waited is sampled, so that it costs no task anything: a few times per
second, for some tasks of an exchange. Their envelopes say since when they waited, the
server says when they were taken. A worker samples when it renews its lease. A process
that runs brief tasks exchanges more often, and says how often to sample.

The runner appends to `ended`; the loop of a worker, or the slice of such a process,
takes the entries out, so no thread waits for another. One script writes them every few
seconds, however many there are, when reports are delivered. Numbers that cannot be
written are dropped: no task depends on them.
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
from workstealing.errors import RedisError
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
# Names whose waits are held until a task of that name ends here. It may end elsewhere,
# so beyond this number the oldest name is dropped.
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
        """Note how long some of the tasks that a worker has just taken had waited.

        They waited since they were submitted, due, or put back into the queue.
        """
        now = self._clock.monotonic()
        if not tasks or now - self._sampled_at < self._sample_every:
            return
        self._sampled_at = now
        for task in tasks[:: len(tasks) // _SAMPLE + 1]:
            if len(task.envelope) > _LONGEST:
                continue
            envelope = Envelope.read_or_none(task.envelope)
            if envelope is None:
                continue
            since_ms = task.waits_since_ms(envelope)
            name = envelope.ability
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
        """Record it, as a flow."""
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
