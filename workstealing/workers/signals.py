"""Hears signals in a thread, so that a main thread that computes keeps none waiting."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterable
from threading import Thread
from types import TracebackType

__all__ = ("SignalWatch",)


class SignalWatch:
    """Listens while it is entered; in the main thread only.

    Args:
        numbers: of the signals to hear.
        heard: is called with each, in a thread; the next one waits until it returns.
    """

    def __init__(
        self,
        numbers: Iterable[signal.Signals],
        heard: Callable[[signal.Signals], None],
    ) -> None:
        self._numbers = tuple(numbers)
        self._heard = heard
        self._ear, self._mouth = socket.socketpair()
        self._mouth.setblocking(False)
        self._thread = Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> SignalWatch:
        self._before = {
            number: signal.signal(number, lambda *_: None) for number in self._numbers
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
        # Each signal is one byte, its number; nothing is the end.
        while heard := self._ear.recv(1):
            if heard[0] in self._numbers:
                self._heard(signal.Signals(heard[0]))
