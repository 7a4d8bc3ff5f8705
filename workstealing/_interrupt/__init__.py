"""Raises an exception in another thread, and never inside somebody else's lock.

`Interruptible().call(function)` runs a function that other threads may interrupt. Once
it has returned or raised, no interruption arrives any more: one that came too late is
taken back, one that was put off is forgotten.

An exception that may be raised anywhere in a thread may leak a lock: between the
`acquire()` of a log handler and its `try`, say, and then every thread that logs hangs.
So the stack of the thread is inspected before anything is sent. Where an exception
could do harm, the interruption is put off, and `deliver()` tries again, until the call
has ended. `True` from `interrupt()` means "asked", `is_sent` means "on its way". What
is never safe is never sent; its caller gives the thread up after a while.

`interruptible.py` holds the call and sends, `safe_places.py` knows where a stack may be
interrupted, and `bytecode.py` reads what the code of a function says about that.

What remains:

- After a C call that fails, the interpreter does not look for exceptions. If the task's
  own code makes one while an interruption is on its way, it may arrive at the beginning
  of a Python `__exit__` around it. Locks of C are safe; a `threading.Condition` is not.
- A thread that is interrupted while it waits in a queue may have been the one that was
  woken for an item. The item stays in the queue, and nobody else is woken.
- C code may call Python code before it returns, and the exception arrives at the
  beginning of that. In a `__del__`, the callback of a weak reference or one of the
  garbage collector (`gc.callbacks`) it is printed and lost. So what was sent a second
  ago is sent again, unless the thread is in an `except`, a `finally` or the exit of a
  `with`: it may be cleaning up. Until then the task runs on.
- A debugger or a tracer written in Python, in the thread that asks, splits the step.
- Other code that holds a lock in none of the ways that are known is not recognised.
- Some loops are hard to catch, and may have to be given up: those that do nothing but
  put and get, or import, or, from 3.13 on, make a C call at the end of a `with` that
  Python code leaves.

While a thread is inside a C call (`time.sleep`, a lock, a socket) it sees nothing, and
afterwards it does. Code may swallow what it is asked, by `except BaseException`, and is
asked again like that. On PyPy, without ctypes and without a GIL, nothing that runs can
be interrupted: the answer is `False`.

Nothing here logs, and nothing waits for a lock other than that of the call itself.
"""

from __future__ import annotations

from workstealing._interrupt.interruptible import (
    Interruptible,
    can_interrupt,
    deliver_until_ended,
    frames_of_thread,
)

__all__ = ("Interruptible", "can_interrupt", "deliver_until_ended", "frames_of_thread")
