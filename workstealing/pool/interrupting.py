"""Raises an exception in another thread, and never in what that thread does next.

`Interruptible().call(function)` runs a function that other threads may interrupt. Once
it has returned or raised, no interruption arrives any more: one that came too late is
taken back.

A thread sees an interruption when it runs Python code. While it is inside a C call
(`time.sleep`, a lock, a socket) it sees nothing, and afterwards it does. So `True`
means "asked", not "stopped". Code may also swallow what it is asked, by `except
BaseException`, or in a `__del__`. Where the interpreter has no such call (PyPy, a
build without ctypes) nothing can be interrupted, and the answer is `False`.

This relies on where CPython 3.10 and later look for such exceptions, free-threaded or
not: when a function begins, after a call, and at a jump backwards. In between, a few
plain assignments are safe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock, get_ident
from typing import Any, TypeVar

from workstealing.errors import StopWork

__all__ = ("Interruptible", "interrupt", "withdraw")

T = TypeVar("T")


def interrupt(thread_ident: int, exception: type[BaseException] = StopWork) -> bool:
    """Raise the exception in a thread, soon; tell whether there is such a thread.

    It replaces one that the thread has not seen yet. Whoever calls this must know that
    the thread still does what is to be interrupted: `Interruptible` does.
    """
    send = _sender()
    return send is not None and send(thread_ident, exception)


def withdraw(thread_ident: int) -> None:
    """Take back what the thread has not seen yet."""
    send = _sender()
    if send is not None:
        send(thread_ident, None)


class Interruptible:
    """One call that other threads may interrupt; made for a single call."""

    _ident = 0
    _shields = 0
    _is_leaving = False
    _is_sent = False
    _asked: type[BaseException] | None = None
    _late: type[BaseException] | None = None

    def __init__(self) -> None:
        # Only the lock is made for each call; what rarely happens is set when it does.
        self._lock = Lock()

    @property
    def asked(self) -> type[BaseException] | None:
        """The exception that was last asked for, whatever became of it."""
        return self._asked

    def call(
        self, function: Callable[..., T], /, *arguments: Any, **keywords: Any
    ) -> T:
        """Call the function in this thread; other threads may interrupt it."""
        try:
            with self._lock:
                if self._late is not None:
                    raise self._late
                self._ident = get_ident()
            value = function(*arguments, **keywords)
        finally:
            # From here on at most one exception is on its way: whoever asks holds the
            # lock and looks at this first. So a second try is not disturbed.
            self._is_leaving = True
            try:
                with self._lock:
                    if self._is_sent:
                        withdraw(self._ident)
            except BaseException as late:
                with self._lock:
                    withdraw(self._ident)
                if type(late) is not self._asked:
                    raise
        return value

    def interrupt(self, exception: type[BaseException] = StopWork) -> bool:
        """Raise the exception once in the call; tell whether it was asked.

        A call that has not begun will raise it when it begins. False: it is over, or
        nothing can be interrupted here.
        """
        with self._lock:
            if self._is_leaving:
                return False
            # Set first: a thread that asks itself is interrupted while it asks.
            before, self._asked = self._asked, exception
            if self._shields or not self._ident:
                self._late = exception
                return True
            self._is_sent = True
            if not interrupt(self._ident, exception):
                self._asked = before
                return False
            return True

    def shielded(
        self, function: Callable[..., T], /, *arguments: Any, **keywords: Any
    ) -> T:
        """Call a function that must not be interrupted; raise afterwards what came.

        For the thread of the call itself, around what must not be left half done.
        """
        with self._lock:
            # What was sent before arrives in here, while nothing is done yet.
            _checkpoint()
            self._shields += 1
        try:
            return function(*arguments, **keywords)
        finally:
            with self._lock:
                self._shields -= 1
                late = None if self._shields else self._late
                self._late = None if late else self._late
            if late is not None:
                raise late


def _checkpoint() -> None:
    """Be a call, after which the interpreter looks for exceptions."""


@cache
def _sender() -> Callable[[int, type[BaseException] | None], bool] | None:
    try:
        import ctypes

        raw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    except (ImportError, AttributeError):
        return None
    raw.argtypes = (ctypes.c_ulong, ctypes.py_object)
    raw.restype = ctypes.c_int
    nothing = ctypes.py_object()

    def send(thread_ident: int, exception: type[BaseException] | None) -> bool:
        return bool(raw(thread_ident, nothing if exception is None else exception))

    return send
