"""Reads single keys from a terminal."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from typing import Any

__all__ = ("Keyboard",)

_ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down"}
# What a terminal sends for one key: a character, or a sequence of them.
_KEYS = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)


class Keyboard:
    """Reads single keys while it is entered, if stdin is a terminal."""

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

    def __exit__(self, *_: object) -> None:
        if sys.platform != "win32" and self._before:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    def pressed(self, timeout: float) -> list[str]:
        """Wait for keys, and return those that were pressed; `up` and `down`, too."""
        if self._file is None:
            time.sleep(timeout)
            return []
        if not select.select([self._file], [], [], timeout)[0]:
            return []
        read = os.read(self._file, 1024)
        if not read:
            # The terminal is gone: no key will arrive.
            self._file = None
        keys = _KEYS.findall(read.decode(errors="replace"))
        return [_ARROWS.get(key, key) for key in keys]
