"""A command on a pseudo-terminal of a given size, and what it shows."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import workstealing

ROOT = Path(workstealing.__file__).parents[1]

# The last one may not be all there yet.
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*([A-Za-z]|$)|\][^\x07]*\x07|[=>]|$)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
_HOME = "\x1b[H"
_SECONDS = 30


class PseudoTerminal:
    """A terminal with `workstealing …` on it."""

    def __init__(
        self,
        app: Path,
        *arguments: str,
        width: int = 80,
        height: int = 40,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
        inherited = {k: v for k, v in os.environ.items() if k not in unset}
        given = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, str(app / "bin" / "workstealing"), *arguments],
            cwd=app,
            env={**inherited, **given},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.output = ""
        # What is read at once may end in the middle of a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def wait_for(self, *texts: str) -> str:
        """Wait for a frame that has all these texts, and return it without colours.

        What was shown before is left out next time.
        """
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            *frames, begun = self.output.split(_HOME)
            for n, frame in enumerate(frames):
                if all(text in plain(frame) for text in texts):
                    self.output = _HOME.join([*frames[n + 1 :], begun])
                    return plain(frame)
            if all(text in plain(begun) for text in texts) and not frames:
                self.output = ""
                return plain(begun)
            self._read()
        raise AssertionError(f"{texts} not shown, but {plain(self.output)[-3000:]}")

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def ended(self) -> int:
        """Read on until it ends, for who is not read from cannot write; its code."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and self._read():
            pass
        return self.process.wait(timeout=_SECONDS)

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def _read(self) -> bool:
        """Read a bit of what it writes; return False at the end of it."""
        if select.select([self._ours], [], [], 0.1)[0]:
            try:
                more = os.read(self._ours, 65536)
            except OSError:
                return False
            self.output += self._decoder.decode(more)
        return True


def plain(shown: str) -> str:
    """Return what was shown without colours and other commands of a terminal."""
    return _ESCAPES.sub("", shown).replace("\r", "")


def has_colours(shown: str) -> bool:
    """Return whether something was shown in a colour."""
    return bool(_COLOURS.search(shown))
