"""Where a task is that does not end, as a traceback.

A task that can be interrupted raises, and its error says where it was. For one that is
given up, or ended with its process, another thread looks at its stack. The result is an
ordinary traceback, so that logs, outcomes and hooks show it like that of an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

from workstealing._interrupt import frames_of_thread
from workstealing.tasks.attempt import Attempt

__all__ = ("stack_of",)

# A coroutine may await another one, which awaits another one, ….
_DEEPEST = 500


def stack_of(
    attempt: Attempt, thread: int | None, coroutine: Any = None
) -> TracebackType | None:
    """Return where an attempt is; None if that cannot be seen.

    Args:
        attempt: it still runs, perhaps.
        thread: the identifier of the thread in which it runs, or its event loop.
        coroutine: what the event loop runs, if it is a coroutine; it may wait.
    """
    code = getattr(attempt.definition.function, "__code__", None)
    frames = [] if thread is None else frames_of_thread(thread)
    for place, frame in enumerate(frames):
        if frame.f_code is code:
            return _traceback(frames[: place + 1])
    if coroutine is not None:
        return _traceback(reversed(_awaited(coroutine)))
    return None if attempt.definition.is_coroutine else _traceback(frames)


def _awaited(coroutine: Any) -> list[FrameType]:
    """Return the frames of a coroutine that waits, outermost first."""
    frames: list[FrameType] = []
    while coroutine is not None and len(frames) < _DEEPEST:
        frame = getattr(coroutine, "cr_frame", None)
        frame = frame or getattr(coroutine, "gi_frame", None)
        if frame is None:
            break
        frames.append(frame)
        awaited = getattr(coroutine, "cr_await", None)
        coroutine = awaited or getattr(coroutine, "gi_yieldfrom", None)
    return frames


def _traceback(frames: Iterable[FrameType]) -> TracebackType | None:
    """Make a traceback of frames, which come innermost first."""
    where: TracebackType | None = None
    for frame in frames:
        line = frame.f_lineno or frame.f_code.co_firstlineno
        where = TracebackType(where, frame, max(0, frame.f_lasti), line)
    return where
