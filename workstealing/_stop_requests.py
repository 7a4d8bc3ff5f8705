"""Tells a request to stop, which is meant for the host, from an error of its side work.

Jobs, setup functions, observers and log handlers run inside a host that has nothing to
do with them, so whatever they raise ends with them: also `SystemExit`, and classes of
their own that derive from `BaseException`. What somebody else raises into the thread
while they run must arrive at the host:

- `KeyboardInterrupt`, and any other `BaseException` that a signal handler raises: by
  `sys.exit()` in a handler of SIGTERM, web servers end their workers;
- `StopWork`, by which a worker stops the task that happens to be the host;
- what gevent throws into a greenlet to end it or to limit its time.

An `Exception` is always taken for an error of the side work.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from types import CodeType, TracebackType
from typing import Any

from workstealing.errors import StopWork

__all__ = ("is_stop_request",)


def is_stop_request(error: BaseException) -> bool:
    """Return whether an exception is meant for the host of the code that raised it."""
    if isinstance(error, Exception):
        return False
    if isinstance(error, KeyboardInterrupt | StopWork):
        return True
    return _is_of_greenlets(type(error)) or _is_of_signal_handler(error.__traceback__)


def _is_of_greenlets(kind: type[BaseException]) -> bool:
    # By name: importing them here would be the first import in most processes.
    names = {f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__}
    return not names.isdisjoint(("greenlet.GreenletExit", "gevent.timeout.Timeout"))


def _is_of_signal_handler(trace: TracebackType | None) -> bool:
    handlers: set[CodeType] | None = None
    while trace is not None:
        if handlers is None:
            handlers = set(_signal_handlers())
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _signal_handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        # A function or a method; else an object that is called.
        method = handler if hasattr(handler, "__code__") else None
        method = method or getattr(handler, "__call__", None)  # noqa: B004
        code = getattr(method, "__code__", None)
        if isinstance(code, CodeType):
            yield code
