"""Reads tracebacks as text: whose frames they are, and where the error was raised.

They come from other machines, perhaps cut at the beginning, so nothing is imported and
nothing is looked up: a frame is known by the line that begins it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

__all__ = ("TracebackPart", "parts_of_traceback", "where_raised")

_FRAME = re.compile(r'^ *File "([^"]*)", line (\d+), in (.*)$')
# Packages of ours through which a task is called.
_OURS = re.compile(
    r"[/\\]workstealing[/\\](?:tasks|workers|client|drivers|pool|_interrupt)\b"
)
# The standard library's, but not what is installed beside it.
_STANDARD = re.compile(r"[/\\]lib[/\\]python3\.\d+[/\\](?!(?:site|dist)-packages[/\\])")


@dataclass(frozen=True, slots=True)
class TracebackPart:
    """Some lines of a traceback."""

    text: str
    frames: int
    """How many frames of the library they are; 0 if they are somebody else's."""


def parts_of_traceback(traceback: str) -> list[TracebackPart]:
    """Split a traceback into the user's frames and those of the library."""
    lines = traceback.rstrip("\n").split("\n")
    is_ours = False
    marked: list[tuple[bool, str]] = []
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None:
            is_ours = _OURS.search(frame[1]) is not None
        elif not line.startswith("  "):
            # The first line, an error, or what stands between two tracebacks.
            is_ours = False
        marked.append((is_ours, line))
    parts = []
    for ours, group in groupby(marked, key=lambda one: one[0]):
        text = [line for _, line in group]
        frames = sum(_FRAME.match(line) is not None for line in text) if ours else 0
        parts.append(TracebackPart("\n".join(text), frames))
    return parts


def where_raised(traceback: str) -> str:
    """Return the last line of somebody else's code: `shop.py:64 in transcode`.

    A line of the standard library is named only if there is no other: many tasks wait
    in the same `asyncio.sleep()`.
    """
    frames = [found for line in traceback.split("\n") if (found := _FRAME.match(line))]
    theirs = [frame for frame in frames if not _OURS.search(frame[1])]
    own = [frame for frame in theirs if not _STANDARD.search(frame[1])]
    for frame in reversed(own or theirs or frames):
        file = re.split(r"[/\\]", frame[1])[-1]
        return f"{file}:{frame[2]} in {frame[3]}"
    return ""
