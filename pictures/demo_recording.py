"""Records `workstealing demo` on a pseudo-terminal: `make cast`.

The recording, `pictures/demo.cast`, has the form of asciicast 2: a line that describes
the terminal, then what was written and when. `cast.py` makes a picture of it.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

__all__ = ("COLUMNS", "LINES", "RECORDING")

RECORDING = Path(__file__).with_name("demo.cast")
COLUMNS, LINES = 64, 34
_TASKS = 8_000
_COMMAND = "from workstealing.cli.entry import main; main()"


def main() -> None:
    """Run the demo, and keep what it writes."""
    ours, theirs = pty.openpty()
    size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    unset = ("COLUMNS", "LINES", "NO_COLOR", "WORKSTEALING_URL", "REDIS_URL")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    demo = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", _COMMAND, "demo", "--tasks", str(_TASKS)],
        env={**env, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    header = {"version": 2, "width": COLUMNS, "height": LINES}
    lines = [json.dumps(header)]
    # A character may arrive in two parts.
    decoder = codecs.getincrementaldecoder("utf-8")()
    began = time.monotonic()
    while True:
        try:
            written = os.read(ours, 65536)
        except OSError:
            break
        if not written:
            break
        at = round(time.monotonic() - began, 3)
        text = decoder.decode(written)
        lines.append(json.dumps([at, "o", text], ensure_ascii=False))
    os.close(ours)
    if demo.wait() != 0:
        raise SystemExit("the demo failed; nothing was recorded")
    RECORDING.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
