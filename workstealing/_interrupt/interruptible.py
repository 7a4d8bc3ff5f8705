"""One call that other threads may interrupt, from its beginning to its end.

The lock of the call is held by the thread that asks while it sends, and by the thread
of the call when it begins and ends. What was asked too early, or where it could do
harm, is kept until `deliver()` finds a moment for it; what was lost is sent again. The
call ends by taking back what its thread has not seen yet.

The look at the thread and the sending are one step. CPython lets another thread run,
and raises what was sent, only when a function begins, after a call, and at a jump
backwards: from its last look on, `_send_if_unmoved` has none of these, so the thread is
still where it was looked at. Up to 3.12 a thread that waits at such a place raises
there, from 3.13 on at the next one.
"""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, starmap
from operator import attrgetter
from threading import Lock, get_ident
from types import CodeType, FrameType
from typing import Any, TypeVar

from workstealing._interrupt.safe_places import CallStack
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import StopWork

__all__ = (
    "Interruptible",
    "can_interrupt",
    "deliver_until_ended",
    "frames_of_thread",
)

T = TypeVar("T")

_ARRIVES_WITHIN = 1.0
"""Seconds after which what was sent, and is not being handled, is sent again."""

_SHORTEST_PAUSE = 0.001
_LONGEST_PAUSE = 0.1

Send = Callable[[int, Any], int]


def _make_sender() -> tuple[Send | None, Any]:
    """Return the call that raises in a thread, and what takes the exception back."""
    if sys.implementation.name != "cpython":
        return None, None
    try:
        import ctypes

        raw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except (ImportError, AttributeError):
        return None, None
    raw.argtypes = (ctypes.c_ulong, ctypes.py_object)
    raw.restype = ctypes.c_int
    return raw, ctypes.py_object()


_raw, _nothing = _make_sender()


def can_interrupt() -> bool:
    """Tell whether this interpreter can interrupt a thread, and safely so."""
    return _raw is not None and getattr(sys, "_is_gil_enabled", lambda: True)()


def deliver_until_ended(calls: Iterable[Interruptible]) -> None:
    """Send what was put off or lost, until each of the calls has ended."""
    pause = _SHORTEST_PAUSE
    while calls := [call for call in calls if not call.has_ended]:
        for call in calls:
            call.deliver()
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.05)


_innermost: dict[int, Interruptible | None] = {}
"""The call that each thread is in; frames do not show which of nested calls it is."""


class Interruptible:
    """One call that other threads may interrupt; made for a single call."""

    _ident = 0
    _shields = 0
    _is_leaving = False
    _was_sent = False
    _asked: type[BaseException] | None = None
    # What was asked for and is not on its way yet: too early, shielded, or put off.
    _unsent: type[BaseException] | None = None
    _sent_at = 0.0
    _was_logging = False

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        # Only the lock is made for each call; what rarely happens is set when it does.
        self._lock = Lock()
        self._clock = clock

    @property
    def asked(self) -> type[BaseException] | None:
        """The exception that was last asked for, whatever became of it."""
        return self._asked

    @property
    def is_sent(self) -> bool:
        """Whether what was last asked for is on its way, or has arrived."""
        return self._asked is not None and self._unsent is None

    @property
    def has_ended(self) -> bool:
        """Whether the function has returned or raised: nothing arrives any more."""
        return self._is_leaving

    def call(
        self, function: Callable[..., T], /, *arguments: Any, **keywords: Any
    ) -> T:
        """Call the function in this thread; other threads may interrupt it."""
        outer = None
        try:
            with self._lock:
                if self._unsent is not None:
                    raise self._unsent
                ident = get_ident()
                outer = _innermost.get(ident)
                _innermost[ident] = self
                self._ident = ident
            value = function(*arguments, **keywords)
        finally:
            # From here on nothing more is sent: this frame has moved, and a sender
            # checks that it has not. At most one exception is on its way, so a second
            # try is not disturbed.
            self._is_leaving = True
            if self._ident:
                _innermost[self._ident] = outer
            if self._was_sent:
                try:
                    # A thread that is about to send holds the lock.
                    with self._lock:
                        _withdraw(self._ident)
                except BaseException as late:
                    with self._lock:
                        _withdraw(self._ident)
                    if type(late) is not self._asked:
                        raise
                finally:
                    if self._was_logging:
                        _release_logging_locks()
        return value

    @property
    def thread(self) -> int | None:
        """The identifier of the thread in which it runs; None before it begins."""
        return self._ident or None

    def interrupt(self, exception: type[BaseException] = StopWork) -> bool:
        """Raise the exception in the call, as soon as that is safe.

        A call that has not begun will raise it when it begins. True: asked for; call
        `deliver()` until the call has ended. False: the call is over, or nothing can be
        interrupted here.
        """
        with self._lock:
            if self._is_leaving:
                return False
            is_running = self._ident and not self._shields
            if is_running and not can_interrupt():
                return False
            # Set first: a thread that asks itself is interrupted while it asks.
            self._asked = self._unsent = exception
            if is_running:
                self._try_to_send(exception, self._stack())
            return True

    def deliver(self) -> bool:
        """Send what was put off, if that is safe now; False while it is still wanted.

        Meant to be called often, every millisecond for a while, and now and then until
        the call has ended. What was sent a second ago and is not being handled has been
        lost or swallowed, and is sent again. If it has only not been seen yet, that
        changes nothing: a thread keeps one exception at most.
        """
        with self._lock:
            exception, is_sent = self._asked, self._unsent is None
            if exception is None or self._is_leaving:
                return True
            age = self._clock.monotonic() - self._sent_at
            if is_sent and age < _ARRIVES_WITHIN:
                return True
            if not self._ident or self._shields or not can_interrupt():
                return False
            stack = self._stack()
            if is_sent and stack is not None and stack.is_cleaning_up():
                return True
            return self._try_to_send(exception, stack)

    def shielded(
        self, function: Callable[..., T], /, *arguments: Any, **keywords: Any
    ) -> T:
        """Call a function that must not be interrupted; raise afterwards what came.

        For the thread of the call itself, around what must not be left half done.
        """
        with self._lock:
            # What was sent before arrives in here, while nothing is done yet.
            _checkpoint()
            if not self._shields:
                self._raise_unsent()
            self._shields += 1
        try:
            return function(*arguments, **keywords)
        finally:
            with self._lock:
                self._shields -= 1
                if not self._shields:
                    self._raise_unsent()

    def _raise_unsent(self) -> None:
        unsent, self._unsent = self._unsent, None
        if unsent is not None:
            self._sent_at = self._clock.monotonic()
            raise unsent

    def _try_to_send(
        self, exception: type[BaseException], stack: CallStack | None
    ) -> bool:
        """Send it if the thread is where it may be interrupted; holds the lock."""
        if stack is None or not stack.may_be_interrupted():
            return False
        # Before the sending: a thread that asks itself does not come back from it.
        before = self._was_sent, self._unsent, self._sent_at, self._was_logging
        self._was_sent, self._unsent = True, None
        self._sent_at = self._clock.monotonic()
        self._was_logging = self._was_logging or stack.is_logging()
        if self._ident == get_ident():
            _send(self._ident, exception)
            return True
        if _send_if_unmoved(self._ident, exception, stack.frames, stack.lastis):
            return True
        self._was_sent, self._unsent, self._sent_at, self._was_logging = before
        return False

    def _stack(self) -> CallStack | None:
        """Return what the thread does in this call, or None if it is in another one."""
        frames = _frames_down_to(_CALL_CODE, self._ident)
        # Asked now: were it another call's frame, it would be gone by now, and the
        # stack not be the same when it comes to the sending.
        if frames is None or _innermost.get(self._ident) is not self:
            return None
        return CallStack(frames)


_CALL_CODE = Interruptible.call.__code__


def _checkpoint() -> None:
    """Be a call, after which the interpreter looks for exceptions."""


def _release_logging_locks() -> None:
    """Release what this thread still holds of logging's locks: it is out of all that.

    They are re-entrant and know their owner, so they can be asked.
    """
    handlers = [reference() for reference in [*getattr(logging, "_handlerList", ())]]
    locks = [getattr(handler, "lock", None) for handler in handlers]
    for lock in (*locks, getattr(logging, "_lock", None)):
        is_owned = getattr(lock, "_is_owned", None)
        while is_owned is not None and is_owned():
            lock.release()  # type: ignore[union-attr]


# --- One step -------------------------------------------------------------------------

_current_frames = sys._current_frames  # noqa: SLF001 - there is no other way
_back = attrgetter("f_back")
_lasti = attrgetter("f_lasti")
# Up to 3.11 the garbage collector runs where something is made, and may run Python
# code, which lets other threads in. Nothing is sent when it is about to.
_COLLECTS_ANYWHERE = sys.version_info < (3, 12)
_FEW_OBJECTS = 64


def frames_of_thread(ident: int) -> list[FrameType]:
    """Return the frames of another thread, innermost first; none if it has ended."""
    with _no_collection():
        frame = _current_frames().get(ident)
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = _caller(frame)
    return frames


def _frames_down_to(code: CodeType, ident: int) -> list[FrameType] | None:
    """Return the frames of a thread, innermost first, down to one of that code.

    None if there is no such frame. If the thread is this one, the frames of this
    module that ask are left out.
    """
    with _no_collection():
        frame = _current_frames().get(ident)
    if ident == get_ident():
        while frame is not None and frame.f_globals is globals():
            if frame.f_code is code:
                break
            frame = frame.f_back
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        if frame.f_code is code:
            return frames
        frame = _caller(frame)
    return None


def _send(ident: int, exception: Any) -> None:
    """Send it, wherever the thread is: to the thread that asks."""
    if _raw is not None:
        _raw(ident, exception)


class _Taken(BaseException):
    """Arrives in place of what was taken back."""


def _withdraw(ident: int) -> None:
    """Take back what this thread has not seen yet."""
    _send(ident, _nothing)
    if sys.version_info[:2] == (3, 11):
        # It goes on looking for what is no longer there, until it finds something. Then
        # each call costs more, and a function that is profiled never begins.
        try:
            _send(ident, _Taken)
            for _ in range(10):
                pass
        except _Taken:
            pass


def _send_if_unmoved(
    ident: int, exception: Any, frames: list[FrameType], lastis: list[int]
) -> bool:
    """Send the exception if the thread's stack is still the same; tell whether it is.

    Between the first look at the thread and the end of the sending, no other thread
    runs: from the unpacking on, there is no call, no loop and no function that begins,
    but for those that C makes by itself, and the one that sends.
    """
    raw = _raw
    if raw is None:
        return False
    top, expected = frames[0], [*lastis, *frames[1:]]
    limit = _objects_until_collection()
    probe: Iterator[Any] = chain(
        starmap(_current_frames, ((),)),
        starmap(gc.get_count, ((),)),
        map(_lasti, frames),
        map(_back, frames[:-1]),
    )
    with _no_collection():
        # fmt: off
        tops, counts, *now = probe
        if (ident in tops and tops[ident] is top
                and now == expected and counts[0] < limit):
            return raw(ident, exception) == 1
        # fmt: on
    return False


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from running while all threads are looked at.

    Up to 3.11, if it did, the interpreter could wait for a lock that it holds itself.
    """
    if not (_COLLECTS_ANYWHERE and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _caller(frame: FrameType) -> FrameType | None:
    """Return the frame that called this one, of a thread that may be running.

    In 3.11 that makes an object. Were the collector to run just then, and the thread
    to go on, the interpreter would read memory that is no more.
    """
    for _ in range(_FEW_OBJECTS):
        limit = _objects_until_collection()
        probe = starmap(gc.get_count, ((),))
        (counts,) = probe
        if counts[0] < limit:
            return frame.f_back
    return None


def _objects_until_collection() -> float:
    """Return how many objects there may be if the collector is not to run soon."""
    threshold = gc.get_threshold()[0]
    if not (_COLLECTS_ANYWHERE and gc.isenabled() and threshold):
        return float("inf")
    limit = max(threshold - _FEW_OBJECTS, 1)
    if gc.get_count()[0] >= limit:
        # Make it run now. In a process that rests, it would be about to for ever.
        # Sets are always made anew, where lists and the like are taken from a store.
        _ = [set[int]() for _ in range(_FEW_OBJECTS + 1)]
    return limit
