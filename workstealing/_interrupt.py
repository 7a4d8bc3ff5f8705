"""Raises an exception in another thread, and never inside somebody else's lock.

`Interruptible().call(function)` runs a function that other threads may interrupt. Once
it has returned or raised, no interruption arrives any more: one that came too late is
taken back, one that was put off is forgotten.

An exception that may be raised anywhere in a thread may leak a lock: between the
`acquire()` of a log handler and its `try`, say, and then every thread that logs hangs.
So the stack of the thread is looked at before anything is sent. Where an exception
could do harm, the interruption is put off, and `deliver()` tries again. `True` from
`interrupt()` means "asked", `is_sent` means "on its way". What is never safe is never
sent; whoever asked gives the thread up after a while.

What is looked at, in every frame from the innermost one down to the call:

- A `with` that Python code enters or leaves puts it off, whoever wrote it.
- Code of others (the standard library, site-packages, and all they call) puts it off
  in a function that acquires, releases or closes, in an `except` or `finally`, and in a
  call right before a `try`.
- Imports, this package and some other modules put it off wherever they are.
- `queue`, `threading` and `concurrent.futures` put it off except where they wait:
  `Condition.wait` is made for that. So does redis-py, except while it reads a reply:
  then it closes the connection.
- Logging can be interrupted while it formats and writes. Whatever its handlers' locks
  may suffer from that is put right by the thread itself when the call ends.

The task's own code (its package, and what is in neither of those places) is interrupted
anywhere else. `with lock:` keeps a lock safe there, and so does a `lock.acquire()`
right before a `try:`.

The look and the sending are one step. CPython lets another thread run, and raises what
was sent, only when a function begins, after a call, and at a jump backwards: from the
last look on, `_send_if_unmoved` has none of these. Up to 3.12 a thread that waits at
such a place raises there. From 3.13 on it raises at the next one, so that is looked at
as well.

What remains:

- After a C call that fails there is no such place. If the task's own code makes one
  while an interruption is on its way, it may arrive at the beginning of a Python
  `__exit__` around it. Locks of C are safe; a `threading.Condition` is not.
- A thread that is interrupted while it waits in a queue may have been the one that was
  woken for an item. The item stays in the queue, and nobody else is woken.
- C code may call Python code before it returns, and the exception arrives at the
  beginning of that. In a `__del__` or the callback of a weak reference it is printed
  and lost; asking again helps.
- A debugger or a tracer written in Python, in the thread that asks, splits the step.
- Other code that holds a lock in none of these ways is not recognised.
- Some loops are hard to catch, and may have to be given up: those that do nothing but
  put and get, or import, or, from 3.13 on, make a C call at the end of a `with` that
  Python code leaves.

While a thread is inside a C call (`time.sleep`, a lock, a socket) it sees nothing, and
afterwards it does. Code may swallow what it is asked, by `except BaseException`. On
PyPy, without ctypes and without a GIL, nothing that runs can be interrupted: the answer
is `False`.

Nothing here logs, and nothing waits for a lock other than that of the call itself.
"""

from __future__ import annotations

import dis
import gc
import logging
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, starmap
from operator import attrgetter
from threading import Condition, Lock, get_ident
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple, TypeVar

from workstealing.errors import StopWork

__all__ = ("Interruptible", "can_interrupt")

T = TypeVar("T")

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


_innermost: dict[int, Interruptible | None] = {}
"""The call that each thread is in; nested ones cannot be told by their frames."""


class Interruptible:
    """One call that other threads may interrupt; made for a single call."""

    _ident = 0
    _shields = 0
    _is_leaving = False
    _is_sent = False
    _asked: type[BaseException] | None = None
    # What was asked for and is not on its way yet: too early, shielded, or put off.
    _wish: type[BaseException] | None = None
    _was_logging = False

    def __init__(self) -> None:
        # Only the lock is made for each call; what rarely happens is set when it does.
        self._lock = Lock()

    @property
    def asked(self) -> type[BaseException] | None:
        """The exception that was last asked for, whatever became of it."""
        return self._asked

    @property
    def is_sent(self) -> bool:
        """Whether what was last asked for is on its way, or has arrived."""
        return self._asked is not None and self._wish is None

    def call(
        self, function: Callable[..., T], /, *arguments: Any, **keywords: Any
    ) -> T:
        """Call the function in this thread; other threads may interrupt it."""
        outer = None
        try:
            with self._lock:
                if self._wish is not None:
                    raise self._wish
                ident = get_ident()
                outer = _innermost.get(ident)
                _innermost[ident] = self
                self._ident = ident
            value = function(*arguments, **keywords)
        finally:
            # From here on nothing more is sent: this frame has moved, and whoever asks
            # looks at that when sending. What was sent is one exception at most, so a
            # second try is not disturbed.
            self._is_leaving = True
            if self._ident:
                _innermost[self._ident] = outer
            if self._is_sent:
                try:
                    # Whoever is about to send holds the lock, and may not have sent.
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

    def interrupt(self, exception: type[BaseException] = StopWork) -> bool:
        """Raise the exception once in the call, as soon as that is safe.

        A call that has not begun will raise it when it begins. True: asked for; see
        `is_sent`, and call `deliver()` until it is. False: the call is over, or nothing
        can be interrupted here.
        """
        with self._lock:
            if self._is_leaving:
                return False
            is_running = self._ident and not self._shields
            if is_running and not can_interrupt():
                return False
            # Set first: a thread that asks itself is interrupted while it asks.
            self._asked = self._wish = exception
            if is_running:
                self._try_to_send(exception)
            return True

    def deliver(self) -> bool:
        """Send what was put off, if that is safe now; False while it is still wanted.

        Meant to be called often, every millisecond for a while.
        """
        with self._lock:
            exception = self._wish
            if exception is None or self._is_leaving:
                return True
            if not self._ident or self._shields or not can_interrupt():
                return False
            return self._try_to_send(exception)

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
                self._raise_wish()
            self._shields += 1
        try:
            return function(*arguments, **keywords)
        finally:
            with self._lock:
                self._shields -= 1
                if not self._shields:
                    self._raise_wish()

    def _raise_wish(self) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            raise wish

    def _try_to_send(self, exception: type[BaseException]) -> bool:
        """Send it if the thread is where it may be interrupted; holds the lock."""
        stack = _Stack.of(self._ident, self)
        if stack is None or not stack.may_be_interrupted():
            return False
        # Before the sending: a thread that asks itself does not come back from it.
        before = self._is_sent, self._wish, self._was_logging
        self._is_sent, self._wish = True, None
        self._was_logging = self._was_logging or stack.is_logging()
        if self._ident == get_ident():
            _send(self._ident, exception)
            return True
        if _send_if_unmoved(self._ident, exception, stack.frames, stack.lastis):
            return True
        self._is_sent, self._wish, self._was_logging = before
        return False


def _checkpoint() -> None:
    """Be a call, after which the interpreter looks for exceptions."""


def _send(ident: int, exception: Any) -> None:
    if _raw is not None:
        _raw(ident, exception)


def _withdraw(ident: int) -> None:
    """Take back what the thread has not seen yet."""
    _send(ident, _nothing)


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
    # fmt: off
    tops, counts, *now = probe
    if ident in tops and tops[ident] is top and now == expected and counts[0] < limit:
        return raw(ident, exception) == 1
    # fmt: on
    return False


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


# --- Where a stack may be interrupted -------------------------------------------------

_RAISES_LATER = sys.version_info >= (3, 13)
"""A thread that waits where it could raise does so only at the next such place."""

_HANDS_OVER = re.compile(
    r"acquire|release|(^|_)(un)?lock(ed)?(_|$)|^_?close|(^|_)(enter|exit|del)(_|$)",
    re.IGNORECASE,
)
"""Names of functions that take something or give it back."""

_ACQUIRES = re.compile(r"acquire", re.IGNORECASE)
_SLEEPS = frozenset({"sleep"})
_LETS_OTHERS_RUN = frozenset(
    {
        *("accept", "connect", "recv", "recv_into", "recvfrom", "sendall"),
        *("fsync", "poll", "select", "sleep", "waitpid"),
    }
)
"""C functions that wait: a thread found there raises right after them."""

_NO_CHECK_AFTER = frozenset({"append", "isinstance", "len", "type"})
"""Calls that the interpreter may make without looking for exceptions after them."""

_NEVER = frozenset(
    {
        "_frozen_importlib",
        "_frozen_importlib_external",
        "_pyio",
        "_weakrefset",
        "importlib",
        "multiprocessing",
        "pkgutil",
        "runpy",
        "tempfile",
        "valkey",
        "warnings",
        "weakref",
        "workstealing",
        "zipimport",
    }
)
_ONLY_THROUGH = {
    "contextlib": {"inner"},
    "logging": {
        *("debug", "info", "warning", "warn", "error", "exception", "critical", "log"),
        *("_log", "makeRecord", "findCaller", "getMessage", "getEffectiveLevel"),
        *("handle", "filter", "callHandlers", "emit", "flush"),
        *("format", "formatMessage", "formatTime", "usesTime", "_format"),
    },
    "subprocess": {
        *("run", "call", "check_call", "check_output"),
        *("communicate", "_communicate", "wait", "_wait", "_try_wait"),
    },
}
"""Modules that may be passed through these functions only."""

_WAITS = {
    "concurrent.futures": {"exception", "result", "wait"},
    "multiprocessing.pool": {"get", "wait"},
    "queue": {"get", "join", "put"},
    "threading": {"wait", "wait_for"},
}
"""Functions of these modules that may be interrupted where a condition waits."""

_WAIT_CODE = Condition.wait.__code__


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_installed(frame: FrameType) -> bool:
    """Tell whether it belongs to the standard library or to an installed package."""
    top = _package_of(frame).partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return True
    path = frame.f_code.co_filename
    return (
        "site-packages" in path or "dist-packages" in path or path.startswith("<frozen")
    )


class _Stack:
    """What a thread does in a call: its frames, innermost first, the call's last."""

    def __init__(self, frames: list[FrameType]) -> None:
        self.frames = frames
        self.lastis = [frame.f_lasti for frame in frames]
        self.inner = frames[:-1]
        self._looks = [_look_at(frame.f_code) for frame in self.inner]
        self._at = [
            look.index(lasti)
            for look, lasti in zip(self._looks, self.lastis, strict=False)
        ]
        self._skip_runner()
        self._foreign = self._find_foreign()

    @classmethod
    def of(cls, ident: int, call: Interruptible) -> _Stack | None:
        """Return the stack of the thread, or None if it is in no or in another call."""
        frame = _current_frames().get(ident)
        if ident == get_ident():
            while frame is not None and frame.f_globals is globals():
                if frame.f_code is _CALL_CODE:
                    break
                frame = frame.f_back
        frames: list[FrameType] = []
        while frame is not None:
            frames.append(frame)
            if frame.f_code is _CALL_CODE:
                # Asked now: were it another call's frame, it would be gone by now, and
                # the stack not be the same when it comes to the sending.
                return cls(frames) if _innermost.get(ident) is call else None
            frame = _caller(frame)
        return None

    def _skip_runner(self) -> None:
        """Leave out this package's own frames between the call and the task."""
        count = len(self.inner)
        while count > 1 and _is_ours(self.inner[count - 1]):
            count -= 1
        del self.inner[count:], self._looks[count:], self._at[count:]

    def _find_foreign(self) -> list[bool]:
        """Tell of each frame whether it is another's, or is called by another's."""
        found, is_foreign = [], False
        for frame in reversed(self.inner):
            is_foreign = is_foreign or not (
                self._is_like_root(frame) or not _is_installed(frame)
            )
            found.append(is_foreign)
        return found[::-1]

    def _is_like_root(self, frame: FrameType) -> bool:
        """Tell whether it is of the task's own package, wherever that is installed."""
        package = _package_of(self.inner[-1]).partition(".")[0]
        is_own = package not in sys.stdlib_module_names or package == "__main__"
        return is_own and _package_of(frame).partition(".")[0] == package

    def may_be_interrupted(self) -> bool:
        """Tell whether an exception does no harm to others, wherever it will arrive."""
        if not self.inner:
            return True
        if self._waits_in_condition():
            return True
        places = range(len(self.inner))
        return (
            self._modules_allow()
            and all(self._may_unwind(place) for place in places)
            and self._top_allows()
        )

    def is_logging(self) -> bool:
        """Tell whether a log handler may be at work in there."""
        return any(_is_in(_package_of(frame), "logging") for frame in self.inner)

    def _waits_in_condition(self) -> bool:
        """Tell whether all that is foreign is a wait that others may interrupt."""
        if self.inner[0].f_code is not _WAIT_CODE:
            return False
        for place, frame in enumerate(self.inner):
            look, at = self._looks[place], self._at[place]
            if look.is_entering(at) or look.is_exiting(at):
                return False
            names = _names_for(_WAITS, _package_of(frame))
            if names is not None:
                if frame.f_code.co_name not in names or look.is_cleaning(at):
                    return False
            elif not (self._module_allows(place) and self._may_unwind(place)):
                return False
        # Only where it waits, which is inside its `try`.
        look, at = self._looks[0], self._at[0]
        return bool(look.handlers(at)) and "acquire" in look.words(at)

    def _modules_allow(self) -> bool:
        return all(self._module_allows(place) for place in range(len(self.inner)))

    def _module_allows(self, place: int) -> bool:
        frame = self.inner[place]
        module = _package_of(frame)
        top = module.partition(".")[0]
        if top in ("redis", "hiredis"):
            return any(map(self._reads_reply, range(len(self.inner))))
        names = _names_for(_WAITS, module)
        if names is not None:
            # Nothing is done yet where it begins. Where it waits is another question.
            is_beginning = place == 0 and self._at[place] == 0
            return is_beginning and frame.f_code.co_name in names
        if top in _NEVER:
            return False
        names = _names_for(_ONLY_THROUGH, module)
        return names is None or frame.f_code.co_name in names

    def _reads_reply(self, place: int) -> bool:
        """Tell whether redis-py closes the connection after any exception from here."""
        look, at, frame = self._looks[place], self._at[place], self.inner[place]
        return (
            _package_of(frame) == "redis.connection"
            and frame.f_code.co_name == "read_response"
            and bool(look.handlers(at))
            and not look.is_cleaning(at)
        )

    def _may_unwind(self, place: int) -> bool:
        """Tell whether an exception may come out of what this frame calls."""
        look, at = self._looks[place], self._at[place]
        is_top = place == 0
        if look.is_exiting(at):
            # Of C, or there would be its frame: it is done before the exception comes.
            return is_top and look.is_checked(at)
        if look.is_entering(at):
            # A lock of C: the next place to raise is inside the block.
            return is_top and not self._foreign[place]
        words = look.words(at)
        is_acquiring = is_top and any(map(_ACQUIRES.search, words))
        if not self._foreign[place]:
            return not (is_acquiring and look.is_before_try(at))
        return not (
            is_acquiring
            or _HANDS_OVER.search(self.inner[place].f_code.co_name)
            or look.is_cleaning(at)
            or (look.is_before_try(at) and not words & _SLEEPS)
        )

    def _top_allows(self) -> bool:
        """Tell whether it may arrive where the innermost frame goes from here."""
        look, at = self._looks[0], self._at[0]
        is_checked = look.is_checked(at)
        if self._foreign[0] and not is_checked:
            return False
        may_fail = look.is_calling(at) and not self._is_like_root(self.inner[0])
        if may_fail and not self._is_clear(returns=False, raises=True):
            return False
        if is_checked and not _RAISES_LATER:
            return True
        if is_checked and look.words(at) & _LETS_OTHERS_RUN:
            return True
        return self._is_clear(returns=True, raises=False)

    def _is_clear(self, *, returns: bool, raises: bool) -> bool:
        """Tell whether the next places to raise are harmless.

        They come after what the innermost frame calls has returned or raised, and may
        lie in its callers. A failure that reaches the task's own code is not followed:
        whatever a task calls inside a `with` could fail.
        """
        for place, look in enumerate(self._looks):
            at = self._at[place]
            raises = raises and self._foreign[place] and not self._reads_reply(place)
            handlers = look.handlers(at)[:1] if raises else ()
            starts = [*(look.successors(at) if returns else ()), *handlers]
            ways = self._follow(place, starts)
            if ways is None:
                return False
            returns = ways.returns
            raises = ways.raises or (raises and not handlers)
        return True

    def _follow(self, place: int, starts: Iterable[int]) -> _Ways | None:
        """Follow the code up to the next places to raise; None if one does harm."""
        look, frame = self._looks[place], self.inner[place]
        is_foreign = self._foreign[place]
        # What an exception in logging might leave behind is put right later.
        is_mended = _is_in(_package_of(frame), "logging")
        todo, seen = list(starts), set[int]()
        returns = raises = False
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if look.is_exiting(at):
                if not (is_mended or _exits_in_c(frame, look, at)):
                    return None
                if look.is_checked(at):
                    continue
            elif look.is_checked(at):
                words = look.words(at)
                if is_foreign and not is_mended and any(map(_HANDS_OVER.search, words)):
                    return None
                if look.is_before_try(at) and any(map(_ACQUIRES.search, words)):
                    return None
                if not words & _NO_CHECK_AFTER:
                    continue
            name = look.steps[at].name
            if name in _RETURNS:
                returns = True
            elif name in _RERAISES:
                handlers = look.handlers(at)
                raises = raises or not handlers
                todo += handlers[:1]
            todo += look.successors(at)
        return _Ways(returns, raises)


class _Ways(NamedTuple):
    """How code may leave its function before the next place to raise."""

    returns: bool
    raises: bool


def _is_ours(frame: FrameType) -> bool:
    return _is_in(_package_of(frame), "workstealing")


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _names_for(table: dict[str, set[str]], module: str) -> set[str] | None:
    for package, names in table.items():
        if _is_in(module, package):
            return names
    return None


def _exits_in_c(frame: FrameType, look: _Look, at: int) -> bool:
    """Tell whether what this `with` holds is a lock or a file made in C."""
    lines = {look.steps[at].line}
    entries = [
        place
        for place, step in enumerate(look.steps)
        if step.name in _ENTERS and step.line in lines
    ]
    return bool(entries) and all(_enters_c(frame, look, place) for place in entries)


def _enters_c(frame: FrameType, look: _Look, at: int) -> bool:
    names: list[str] = []
    place = at - 1
    while place >= 0 and look.steps[place].name == "LOAD_ATTR":
        names.append(str(look.steps[place].value))
        place -= 1
    step = look.steps[place]
    if not step.name.startswith("LOAD_") or not isinstance(step.value, str):
        return "open" in look.globals_on_line(at)
    value = _variable(frame, step.value)
    for name in reversed(names):
        value = _plain_attribute(value, name)
    for kind in type(value).__mro__:
        if "__exit__" in kind.__dict__:
            return not isinstance(kind.__dict__["__exit__"], FunctionType)
    return False


def _variable(frame: FrameType, name: str) -> Any:
    # Before 3.13, to ask a running frame of another thread for its variables copies all
    # of them, and crashes the interpreter when it lets that thread run meanwhile.
    if sys.version_info >= (3, 13) and name in frame.f_locals:
        return frame.f_locals[name]
    return frame.f_globals.get(name)


def _plain_attribute(value: Any, name: str) -> Any:
    """Return what an object keeps under that name, without running code of its own."""
    try:
        return object.__getattribute__(value, "__dict__").get(name)
    except AttributeError:
        return None


# --- What a function's code says ------------------------------------------------------

_ENTERS = frozenset(
    {"BEFORE_ASYNC_WITH", "BEFORE_WITH", "SETUP_ASYNC_WITH", "SETUP_WITH"}
)
_CALLS = frozenset(
    {
        "CALL",
        "CALL_FUNCTION",
        "CALL_FUNCTION_EX",
        "CALL_FUNCTION_KW",
        "CALL_KW",
        "CALL_METHOD",
        "PRECALL",
    }
)
_CHECKS = _CALLS | {"JUMP_ABSOLUTE", "JUMP_BACKWARD", "RESUME"}
_RETURNS = frozenset({"RETURN_CONST", "RETURN_VALUE", "YIELD_VALUE"})
_RERAISES = frozenset({"RAISE_VARARGS", "RERAISE"})
_ENDS = (
    _RETURNS
    | _RERAISES
    | {"JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD"}
)
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
_SETUPS = frozenset({"SETUP_ASYNC_WITH", "SETUP_FINALLY", "SETUP_WITH"})
_NAMES = frozenset({*dis.hasname, *dis.haslocal, *dis.hasfree})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_NO_LINE = 0


class _Step(NamedTuple):
    """One instruction."""

    offset: int
    code: int
    name: str
    value: Any
    line: int


class _Protection(NamedTuple):
    """The handlers around an instruction, inner first, and whether it is in one."""

    handlers: tuple[int, ...] = ()
    is_cleaning: bool = False


class _Look:
    """What the instructions of a function tell about where it is."""

    def __init__(self, code: CodeType) -> None:
        self.steps = list(_steps_of(code))
        self._offsets = [step.offset for step in self.steps]
        if hasattr(code, "co_exceptiontable"):
            self._protections = self._from_table(code.co_exceptiontable)
        else:
            self._protections = self._from_blocks()
        self._cleaning_lines = {
            step.line
            for step, protection in zip(self.steps, self._protections, strict=True)
            if protection.is_cleaning and step.line != _NO_LINE
        }
        self._with_lines = {step.line for step in self.steps if step.name in _ENTERS}
        self._words: dict[int, frozenset[str]] = {}

    def index(self, lasti: int) -> int:
        """Return which instruction that is; the first one if none has begun."""
        return max(bisect_right(self._offsets, lasti) - 1, 0)

    def is_entering(self, at: int) -> bool:
        """Whether it calls an `__enter__`."""
        return self.steps[at].name in _ENTERS

    def is_exiting(self, at: int) -> bool:
        """Whether it calls an `__exit__`, after an exception or without one."""
        step = self.steps[at]
        if step.name == "WITH_EXCEPT_START":
            return True
        if step.name not in _CALLS:
            return False
        before = at - 2 if self.steps[at - 1].name == "PRECALL" else at - 1
        return before >= 2 and all(
            (name == "LOAD_CONST" and value is None) or name in ("DUP_TOP", "COPY")
            for _, _, name, value, _ in self.steps[before - 2 : before + 1]
        )

    def is_checked(self, at: int) -> bool:
        """Whether the interpreter looks for exceptions right after it."""
        step = self.steps[at]
        return (
            at == 0 or step.name in _CHECKS or step.name.startswith("POP_JUMP_BACKWARD")
        )

    def is_calling(self, at: int) -> bool:
        """Whether it is a call, which may fail."""
        return self.steps[at].name in _CALLS

    def is_cleaning(self, at: int) -> bool:
        """Whether it is in an `except` or `finally`, in whichever copy of it."""
        if self._protections[at].is_cleaning:
            return True
        line = self.steps[at].line
        return line in self._cleaning_lines and line not in self._with_lines

    def is_before_try(self, at: int) -> bool:
        """Whether a `try` or `with` begins before the next place to raise."""
        inside = len(self._protections[at].handlers)
        for place in range(at + 1, len(self.steps)):
            if len(self._protections[place].handlers) > inside:
                return not self._protections[place].is_cleaning
            if self.steps[place].name in _ENDS or self.is_checked(place):
                break
        return False

    def handlers(self, at: int) -> tuple[int, ...]:
        """Return where exceptions of this instruction are handled, inner first."""
        return self._protections[at].handlers

    def successors(self, at: int) -> list[int]:
        """Return what may come after it, exceptions apart."""
        step, found = self.steps[at], []
        if step.name not in _ENDS and at + 1 < len(self.steps):
            found.append(at + 1)
        if step.code in _JUMPS and step.name not in _SETUPS:
            found.append(self.index(step.value))
        return found

    def words(self, at: int) -> frozenset[str]:
        """Return the names in the line of this instruction."""
        line = self.steps[at].line
        if line not in self._words:
            self._words[line] = frozenset(
                step.value
                for step in self.steps
                if step.line == line
                and step.code in _NAMES
                and isinstance(step.value, str)
            )
        return self._words[line]

    def globals_on_line(self, at: int) -> set[str]:
        """Return the global names in the line of this instruction."""
        line = self.steps[at].line
        return {
            str(step.value)
            for step in self.steps
            if step.line == line and step.name in _GLOBALS
        }

    def _from_table(self, table: bytes) -> list[_Protection]:
        """Read the exception table of 3.11 and later; it tells the innermost only."""
        entries = list(_entries_of(table))
        starts = [entry.start for entry in entries]

        def entry_at(offset: int) -> _Entry | None:
            place = bisect_right(starts, offset) - 1
            if place >= 0 and offset < entries[place].end:
                return entries[place]
            return None

        def protection(offset: int) -> _Protection:
            handlers: list[int] = []
            is_cleaning, depth = False, None
            entry = entry_at(offset)
            while entry is not None:
                first = self.index(entry.target)
                name = self.steps[first].name
                if name == "PUSH_EXC_INFO":
                    handlers.append(first)
                    depth = entry.depth
                elif name != "CALL_INTRINSIC_1" and name != "SWAP":
                    # What ends a handler: that of the `try` we are in, or around us.
                    is_cleaning = is_cleaning or depth is None or entry.depth <= depth
                following = entry_at(entry.target)
                if following is entry:
                    break
                entry = following
            return _Protection(tuple(handlers), is_cleaning)

        return [protection(offset) for offset in self._offsets]

    def _from_blocks(self) -> list[_Protection]:
        """Follow the blocks that 3.10 sets up and takes down."""
        found: dict[int, tuple[int, ...]] = {}
        todo: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while todo:
            at, blocks = todo.pop()
            if at in found or at >= len(self.steps):
                continue
            found[at] = blocks
            step = self.steps[at]
            if step.name in _SETUPS:
                target = self.index(step.value)
                todo.append((target, (-1, *blocks)))
                blocks = (target, *blocks)
            elif step.name in ("POP_BLOCK", "POP_EXCEPT"):
                blocks = blocks[1:]
            todo += [(following, blocks) for following in self.successors(at)]
        every = (found.get(at, ()) for at in range(len(self.steps)))
        return [
            _Protection(tuple(block for block in blocks if block >= 0), -1 in blocks)
            for blocks in every
        ]


class _Entry(NamedTuple):
    start: int
    end: int
    target: int
    depth: int


def _steps_of(code: CodeType) -> Iterator[_Step]:
    lines = {
        offset: line or _NO_LINE
        for start, end, line in code.co_lines()
        for offset in range(start, end, 2)
    }
    for found in dis.get_instructions(code):
        if found.opname not in ("CACHE", "EXTENDED_ARG", "NOP"):
            line = lines.get(found.offset, _NO_LINE)
            yield _Step(found.offset, found.opcode, found.opname, found.argval, line)


def _entries_of(table: bytes) -> Iterator[_Entry]:
    """Read an exception table: numbers of six bits to a byte, the high ones first."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    for place in range(0, len(numbers) - 3, 4):
        start, length, target, depth = numbers[place : place + 4]
        yield _Entry(start * 2, (start + length) * 2, target * 2, depth >> 1)


_CALL_CODE = Interruptible.call.__code__
_MOST_LOOKS = 2048
_looks: dict[int, tuple[CodeType, _Look]] = {}


def _look_at(code: CodeType) -> _Look:
    """Return what is known about the code, and keep it: it is asked for often.

    By identity: codes that are equal may still be many to compare.
    """
    known = _looks.get(id(code))
    if known is None or known[0] is not code:
        if len(_looks) >= _MOST_LOOKS:
            _looks.clear()
        known = _looks[id(code)] = (code, _Look(code))
    return known[1]
