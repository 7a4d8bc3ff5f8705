"""Hears single keys while a live view is shown; Ctrl-C works as ever."""

from __future__ import annotations

import os
import select
import sys
import time
from types import TracebackType
from typing import Any

__all__ = ("Keyboard",)


class Keyboard:
    """Listens while it is entered, if somebody sits at a terminal."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._before: list[Any] = []

    def __enter__(self) -> Keyboard:
        if sys.platform != "win32" and sys.stdin.isatty():
            import termios
            import tty

            self._file = sys.stdin.fileno()
            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if sys.platform != "win32" and self._file is not None:
            import termios

            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def heard(self, key: str, within: float) -> bool:
        """Wait for a key; False if it was not pressed in time."""
        end = time.monotonic() + within
        while (left := end - time.monotonic()) > 0:
            if self._file is None:
                time.sleep(left)
            elif select.select([self._file], [], [], left)[0]:
                pressed = os.read(self._file, 1024)
                if key.encode() in pressed:
                    return True
                if not pressed:
                    # The terminal is gone: nobody will press anything.
                    self._file = None
        return False
