"""Where a thread may be interrupted without harm to anything but its own task.

Every frame is inspected, from the innermost one down to the call. The interruption is
put off by:

- a `with` whose `__enter__` or `__exit__` is Python code, in any module;
- foreign code (the standard library, site-packages, and all they call) in a function
  that acquires, releases or closes, in an `except` or `finally`, and in a call right
  before a `try`;
- a `__del__` and a callback of the garbage collector, where it would be lost;
- imports, this package and some other modules, in all their functions;
- `queue`, `threading` and `concurrent.futures`, except where they wait:
  `Condition.wait` is made for that;
- redis-py, except while it reads a reply: then it closes the connection.

Logging can be interrupted while it formats and writes. Locks of its handlers that are
left held by that are released by the thread itself when the call ends.

The task's own code (its package, and what is in neither of those places) is interrupted
anywhere else. `with lock:` keeps a lock safe there, and so does a `lock.acquire()`
right before a `try:`.

From 3.13 on the exception is raised at the next place where the interpreter looks for
one, so the code is followed up to there.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Condition
from types import FrameType, FunctionType
from typing import Any, NamedTuple

from workstealing._interrupt.bytecode import FunctionBytecode, bytecode_of

__all__ = ("CallStack",)

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


class CallStack:
    """What a thread does in a call: its frames, innermost first, the call's last."""

    def __init__(self, frames: list[FrameType]) -> None:
        self.frames = frames
        self.lastis = [frame.f_lasti for frame in frames]
        self._every_place = [
            _Place.of(frame, lasti)
            for frame, lasti in zip(frames[:-1], self.lastis, strict=False)
        ]
        self._places = _without_runner(self._every_place)
        self._mark_foreign()

    def may_be_interrupted(self) -> bool:
        """Tell whether an exception does no harm to others, wherever it will arrive."""
        if not self._places or self._waits_in_condition():
            return True
        return (
            not any(place.drops_exceptions() for place in self._places)
            and all(map(self._module_allows, self._places))
            and all(map(self._may_unwind, self._places))
            and self._top_allows()
        )

    def is_cleaning_up(self) -> bool:
        """Tell whether the thread may be handling an exception.

        That is so in an `except`, a `finally` and the exit of a `with`, and in all that
        is called from there.
        """
        return any(
            place.code.is_cleaning(place.at) or place.code.is_exiting(place.at)
            for place in self._every_place
        )

    def is_logging(self) -> bool:
        """Tell whether a log handler may be at work in there."""
        return any(_is_in(place.module, "logging") for place in self._places)

    def _mark_foreign(self) -> None:
        """Mark the places in foreign code, and in what that calls."""
        is_foreign = False
        for place in reversed(self._places):
            is_own = self._is_like_root(place) or not place.is_installed()
            is_foreign = is_foreign or not is_own
            place.is_foreign = is_foreign

    def _is_like_root(self, place: _Place) -> bool:
        """Tell whether it is of the task's own package, wherever that is installed."""
        root = self._places[-1].package
        return not _is_of_python(root) and place.package == root

    def _is_top(self, place: _Place) -> bool:
        return place is self._places[0]

    def _waits_in_condition(self) -> bool:
        """Tell whether all that is foreign is a wait that others may interrupt."""
        top = self._places[0]
        if top.frame.f_code is not _WAIT_CODE:
            return False
        for place in self._places:
            code, at = place.code, place.at
            if code.is_entering(at) or code.is_exiting(at):
                return False
            names = _names_for(_WAITS, place.module)
            if names is not None:
                if place.function not in names or code.is_cleaning(at):
                    return False
            elif not (self._module_allows(place) and self._may_unwind(place)):
                return False
        # Only where it waits, which is inside its `try`.
        return bool(top.code.handlers(top.at)) and "acquire" in top.words()

    def _module_allows(self, place: _Place) -> bool:
        if place.package in ("redis", "hiredis"):
            return any(each.reads_reply() for each in self._places)
        names = _names_for(_WAITS, place.module)
        if names is not None:
            # Nothing is done yet where it begins. Where it waits is another question.
            is_beginning = self._is_top(place) and place.at == 0
            return is_beginning and place.function in names
        if place.package in _NEVER:
            return False
        names = _names_for(_ONLY_THROUGH, place.module)
        return names is None or place.function in names

    def _may_unwind(self, place: _Place) -> bool:
        """Tell whether an exception may come out of what this frame calls."""
        code, at, is_top = place.code, place.at, self._is_top(place)
        if code.is_exiting(at):
            # Of C, or there would be its frame: it is done before the exception comes.
            return is_top and code.is_checked(at)
        if code.is_entering(at):
            # A lock of C: the next place to raise is inside the block.
            return is_top and not place.is_foreign
        words = place.words()
        is_acquiring = is_top and any(map(_ACQUIRES.search, words))
        if not place.is_foreign:
            return not (is_acquiring and code.is_before_try(at))
        return not (
            is_acquiring
            or _HANDS_OVER.search(place.function)
            or code.is_cleaning(at)
            or (code.is_before_try(at) and not words & _SLEEPS)
        )

    def _top_allows(self) -> bool:
        """Tell whether it may arrive where the innermost frame goes from here."""
        top = self._places[0]
        is_checked = top.code.is_checked(top.at)
        if top.is_foreign and not is_checked:
            return False
        may_fail = top.code.is_calling(top.at) and not self._is_like_root(top)
        if may_fail and not self._is_clear(returns=False, raises=True):
            return False
        if is_checked and (not _RAISES_LATER or top.words() & _LETS_OTHERS_RUN):
            return True
        return self._is_clear(returns=True, raises=False)

    def _is_clear(self, *, returns: bool, raises: bool) -> bool:
        """Tell whether the next places to raise are harmless.

        They come after what the innermost frame calls has returned or raised, and may
        lie in its callers. A failure that reaches the task's own code is not followed:
        whatever a task calls inside a `with` could fail.
        """
        for place in self._places:
            code, at = place.code, place.at
            raises = raises and place.is_foreign and not place.reads_reply()
            handlers = code.handlers(at)[:1] if raises else ()
            ways = place.follow([*(code.successors(at) if returns else ()), *handlers])
            if ways is None:
                return False
            returns = ways.returns
            raises = ways.raises or (raises and not handlers)
        return True


@dataclass(slots=True, eq=False)
class _Place:
    """Where one frame of a stack is."""

    frame: FrameType
    code: FunctionBytecode
    at: int
    module: str
    package: str
    is_foreign: bool = False

    @classmethod
    def of(cls, frame: FrameType, lasti: int) -> _Place:
        code = bytecode_of(frame.f_code)
        module = str(frame.f_globals.get("__name__", ""))
        return cls(frame, code, code.index(lasti), module, module.partition(".")[0])

    @property
    def function(self) -> str:
        return self.frame.f_code.co_name

    def words(self) -> frozenset[str]:
        """Return the names in its line."""
        return self.code.words(self.at)

    def is_installed(self) -> bool:
        """Tell whether it is of the standard library or of an installed package."""
        if _is_of_python(self.package):
            return True
        path = self.frame.f_code.co_filename
        return path.startswith("<frozen") or (
            "site-packages" in path or "dist-packages" in path
        )

    def drops_exceptions(self) -> bool:
        """Tell whether Python prints what is raised here, and goes on."""
        code = self.frame.f_code
        return code.co_name == "__del__" or any(
            getattr(callback, "__code__", None) is code for callback in [*gc.callbacks]
        )

    def reads_reply(self) -> bool:
        """Tell whether redis-py closes the connection after any exception from here."""
        return (
            self.module == "redis.connection"
            and self.function == "read_response"
            and bool(self.code.handlers(self.at))
            and not self.code.is_cleaning(self.at)
        )

    def follow(self, starts: Iterable[int]) -> _WaysOut | None:
        """Follow the code up to the next places to raise; None if one does harm."""
        code = self.code
        # What an exception in logging might leave behind is put right later.
        is_mended = _is_in(self.module, "logging")
        todo, seen = list(starts), set[int]()
        returns = raises = False
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if code.is_exiting(at):
                if not (is_mended or self._exits_in_c(at)):
                    return None
                if code.is_checked(at):
                    continue
            elif code.is_checked(at):
                words = code.words(at)
                is_at_risk = self.is_foreign and not is_mended
                if is_at_risk and any(map(_HANDS_OVER.search, words)):
                    return None
                if code.is_before_try(at) and any(map(_ACQUIRES.search, words)):
                    return None
                if not words & _NO_CHECK_AFTER:
                    continue
            if code.is_returning(at):
                returns = True
            elif code.is_raising(at):
                handlers = code.handlers(at)
                raises = raises or not handlers
                todo += handlers[:1]
            todo += code.successors(at)
        return _WaysOut(returns, raises)

    def _exits_in_c(self, at: int) -> bool:
        """Tell whether what this `with` holds is a lock or a file made in C."""
        entries = self.code.entries_on_line(at)
        return bool(entries) and all(map(self._enters_c, entries))

    def _enters_c(self, at: int) -> bool:
        names = self.code.entered_names(at)
        if not names:
            return "open" in self.code.globals_on_line(at)
        value = self._variable(names[0])
        for name in names[1:]:
            value = _plain_attribute(value, name)
        for kind in type(value).__mro__:
            if "__exit__" in kind.__dict__:
                return not isinstance(kind.__dict__["__exit__"], FunctionType)
        return False

    def _variable(self, name: str) -> Any:
        # Before 3.13, to ask a running frame of another thread for its variables copies
        # all of them, and crashes the interpreter when it lets that thread run
        # meanwhile.
        frame = self.frame
        if sys.version_info >= (3, 13) and name in frame.f_locals:
            return frame.f_locals[name]
        return frame.f_globals.get(name)


class _WaysOut(NamedTuple):
    """How code may leave its function before the next place to raise."""

    returns: bool
    raises: bool


def _without_runner(places: list[_Place]) -> list[_Place]:
    """Leave out this package's own frames between the call and the task."""
    count = len(places)
    while count > 1 and places[count - 1].package == "workstealing":
        count -= 1
    return places[:count]


def _is_of_python(package: str) -> bool:
    return package in sys.stdlib_module_names and package != "__main__"


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _names_for(table: dict[str, set[str]], module: str) -> set[str] | None:
    for package, names in table.items():
        if _is_in(module, package):
            return names
    return None


def _plain_attribute(value: Any, name: str) -> Any:
    """Return what an object keeps under that name, without running code of its own."""
    try:
        return object.__getattribute__(value, "__dict__").get(name)
    except AttributeError:
        return None
