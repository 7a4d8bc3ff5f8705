"""SIGTERM and SIGINT for a worker: the first asks it to end, the second ends it.

A thread listens, woken by the system itself, so a task that computes for long does not
keep a second signal waiting.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from threading import Thread
from types import TracebackType

__all__ = ("SignalWatch",)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalWatch:
    """Listens while it is entered; in the main thread only.

    Args:
        first: is called with the first signal, in a thread.
        last: is called with the second one; then the process ends at once, with the
            exit code that a shell gives for the signal.
    """

    def __init__(
        self,
        first: Callable[[signal.Signals], None],
        last: Callable[[signal.Signals], None],
    ) -> None:
        self._first = first
        self._last = last
        self._ear, self._mouth = socket.socketpair()
        self._mouth.setblocking(False)
        self._thread = Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> SignalWatch:
        self._before = {
            number: signal.signal(number, lambda *_: None) for number in _SIGNALS
        }
        self._former_mouth = signal.set_wakeup_fd(self._mouth.fileno())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(self._former_mouth)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._mouth.close()
        self._thread.join()
        self._ear.close()

    def _listen(self) -> None:
        was_asked = False
        # Each signal is one byte, its number; nothing is the end.
        while heard := self._ear.recv(1):
            if heard[0] not in _SIGNALS:
                continue
            number = signal.Signals(heard[0])
            if was_asked:
                self._last(number)
                os._exit(128 + number)
            was_asked = True
            self._first(number)
