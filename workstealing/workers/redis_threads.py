"""Threads that wait for Redis, so that the other threads of a worker need not.

`WakeUpListener` waits for a wake-up while slots are idle, where the loop must not.
`Heartbeat` does the work of a loop whose own thread runs a task: only a worker with an
inline slot needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from workstealing._logs import BackgroundLogger
from workstealing.drivers.sync_driver import DedicatedDriver
from workstealing.errors import RedisError
from workstealing.queue.steps import RedisCommand

__all__ = ("Heartbeat", "WakeUpListener")

logger = BackgroundLogger(__name__)

_PAUSE_SECONDS = 1.0
_TICK_SECONDS = 0.05


class WakeUpListener:
    """A daemon thread that waits for wake-ups of a queue.

    Args:
        driver: where to listen; the listener closes it.
        bell: returns the key of the list of wake-ups, now.
        seconds: to wait at a time.
        woken: what to call then; returns whether there is any use for it.
    """

    def __init__(
        self,
        driver: DedicatedDriver,
        bell: Callable[[], str],
        seconds: float,
        woken: Callable[[], bool],
    ) -> None:
        self._driver = driver
        self._bell = bell
        self._seconds = seconds
        self._woken = woken
        self._is_wanted = Event()
        self._is_over = Event()
        self._thread = Thread(
            target=self._listen, name="workstealing-wake-ups", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def listen(self) -> None:
        """Listen for a while, if it does not do so already."""
        self._is_wanted.set()

    def move(self) -> None:
        """Listen no longer where the worker is no more."""
        self._driver.interrupt()

    def stop(self) -> None:
        """End soon; nobody needs to wait for it."""
        self._is_over.set()
        self._is_wanted.set()
        self._driver.interrupt()

    def _listen(self) -> None:
        while True:
            self._is_wanted.wait()
            # Cleared before the look, so that a stop between the two is not forgotten.
            self._is_wanted.clear()
            if self._is_over.is_set():
                self._driver.close()
                return
            key = self._bell()
            wait = RedisCommand(("BLPOP", key, self._seconds), bool, is_blocking=True)
            try:
                is_woken = self._driver.call(wait)
                # The worker has ended or gone to another shard, or its slots are busy:
                # others may be at rest, and would not hear of it for a while.
                is_elsewhere = self._is_over.is_set() or key != self._bell()
                if is_woken and (is_elsewhere or not self._woken()):
                    self._driver.call(RedisCommand(("RPUSH", key, "1"), parse=bool))
            except Exception as error:  # noqa: BLE001 - it must not end
                # The loop has noticed too, and says so.
                logger.debug("cannot listen for wake-ups: %r", error)
                # Unless it was only called back, to listen in another shard.
                if key == self._bell():
                    self._is_over.wait(_PAUSE_SECONDS)


class Heartbeat:
    """A daemon thread that calls *beat* every 50 ms, or more often for a short lease.

    Args:
        name: of the worker.
        renew_seconds: how often its lease is to be renewed.
        beat: does what is due, on a connection of this thread.
    """

    def __init__(
        self, name: str, renew_seconds: float, beat: Callable[[], None]
    ) -> None:
        self._name = name
        self._beat = beat
        self._tick = min(_TICK_SECONDS, renew_seconds)
        self._pause = min(_PAUSE_SECONDS, renew_seconds)
        self._stopping = Event()
        self._thread = Thread(
            target=self._run, name="workstealing-heartbeat", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._tick):
            try:
                self._beat()
            except RedisError as error:
                logger.debug(
                    "worker %s could not renew its lease: %r", self._name, error
                )
                self._stopping.wait(self._pause)
            except Exception as error:  # noqa: BLE001 - it must not end
                logger.error("heartbeat of worker %s failed", self._name, error=error)
