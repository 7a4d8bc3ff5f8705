"""Frames of a live view; while Redis is unreachable, the last one and the problem."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rich.text import Text

from workstealing._printing import on_one_line
from workstealing.cli.colours import ALARM
from workstealing.cli.tables import PagePart
from workstealing.errors import RedisError
from workstealing.inspecting.formatting import duration_ms

__all__ = ("FrameReader", "LiveFrame")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFrame:
    """What a live view shows at one moment."""

    problem: str = ""
    """Why nothing can be read now; empty if it can."""
    silent_ms: int = 0
    """For how long."""

    @property
    def is_known(self) -> bool:
        """Whether what is watched exists."""
        return True

    def unreachable(self) -> list[PagePart]:
        """Return a line that says so, if Redis is unreachable."""
        if not self.problem:
            return []
        silent = duration_ms(self.silent_ms)
        words = f"REDIS UNREACHABLE for {silent}, last numbers below: {self.problem}"
        return [Text(on_one_line(words), style=ALARM)]


F = TypeVar("F", bound=LiveFrame)


class FrameReader(Generic[F]):
    """Reads frames; while Redis is unreachable, the last one with the problem.

    Args:
        read: reads a frame.
        first: is shown, with the problem, until one could be read.
    """

    def __init__(self, read: Callable[[], F], first: F) -> None:
        self._read = read
        self._frame = first
        self._seen_at = time.monotonic()

    def last_or_next(self) -> F:
        """Read a frame; while Redis is unreachable, return the last one and say so."""
        try:
            self._frame = self._read()
            self._seen_at = time.monotonic()
        except RedisError as error:
            silent_ms = round((time.monotonic() - self._seen_at) * 1000)
            self._frame = replace(self._frame, problem=str(error), silent_ms=silent_ms)
        return self._frame
