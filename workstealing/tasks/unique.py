"""What makes a task unique: by what, for how long, and what a second one does.

    @queue.task(unique=Unique(by="customer", until="started"))

Its unique key is the name of the task and a digest of what `by` names, as canonical
JSON: arguments as the worker will read them, defaults filled in, names sorted. The
version is not part of it, so that two releases that run side by side do not do the same
work twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import msgspec

from workstealing._checks import checked_seconds, milliseconds
from workstealing.errors import ConfigurationError, KeyFailed
from workstealing.tasks.json_values import NOT_JSON, canonical_value
from workstealing.tasks.key_functions import (
    ask_key_function,
    check_key_argument,
    check_key_function,
)
from workstealing.tasks.signature import Signature

__all__ = ("Unique", "checked_unique", "unique_key")

Until: TypeAlias = "Literal['started', 'done'] | float | timedelta"
OnConflict: TypeAlias = Literal["keep", "replace", "reschedule"]

_ALL = "args"
_WORDS = ("keep", "replace", "reschedule")
_LONGEST_SECONDS = 366 * 86_400


@dataclass(frozen=True, slots=True, eq=False)
class Unique:
    """Submits a task only if there is none like it; see the page "Unique tasks".

    Args:
        by: what makes two tasks alike: `"args"`, all arguments; the name of an
            argument, or several names; or a function, which takes arguments by their
            names and returns a value that JSON has.
        until: how long the task is unique: `"started"`, until a worker takes it to run
            it; `"done"`, until it has ended in whatever way; or seconds from its
            submission, whatever happens to it, a year at most.
        on_conflict: what to do with an earlier task that waits: `"keep"` it,
            `"replace"` it by the new one, or `"reschedule"` it, with its own arguments,
            for when the new one would be due. An earlier task that runs is kept.
        debounce: seconds that a task waits before it runs; another one that comes by
            then replaces it, and the wait starts again.
        longest: the most seconds that it waits, however many tasks replace it.
    """

    by: str | Sequence[str] | Callable[..., Any] = _ALL
    until: Until | None = None
    on_conflict: OnConflict | None = None
    debounce: float | timedelta | None = None
    longest: float | timedelta | None = None

    def __post_init__(self) -> None:
        if self.debounce is not None:
            self._check_debounce()
        elif self.longest is not None:
            raise ConfigurationError("longest= limits the wait of debounce=: give both")
        until: Any = self._otherwise(self.until, "started", "done")
        conflict = self._otherwise(self.on_conflict, "replace", "keep")
        if isinstance(until, str):
            if until not in ("started", "done"):
                raise ConfigurationError(
                    f"until must be 'started', 'done' or seconds, not {until!r}"
                )
        else:
            checked_seconds(until, "until", most=_LONGEST_SECONDS)
        if conflict not in _WORDS:
            raise ConfigurationError(
                "on_conflict must be 'keep', 'replace' or 'reschedule', not"
                f" {conflict!r}"
            )
        object.__setattr__(self, "until", until)
        object.__setattr__(self, "on_conflict", conflict)
        if not callable(self.by):
            object.__setattr__(self, "by", _names(self.by))

    def _check_debounce(self) -> None:
        wait = checked_seconds(self.debounce, "debounce", most=_LONGEST_SECONDS)
        if self.until not in (None, "started") or self.on_conflict not in (
            None,
            "replace",
        ):
            raise ConfigurationError(
                "debounce= means until='started' and on_conflict='replace': leave both"
                " out"
            )
        if self.longest is not None:
            longest = checked_seconds(self.longest, "longest", most=_LONGEST_SECONDS)
            if longest < wait:
                raise ConfigurationError(
                    f"longest={longest:g} must not be shorter than debounce={wait:g}"
                )

    def _otherwise(self, given: Any, debounced: str, usual: str) -> Any:
        if given is not None:
            return given
        return usual if self.debounce is None else debounced

    @property
    def ends(self) -> Literal["s", "d", "w"]:
        """When the key is free, as scripts write it: started, done, after a window."""
        if self.until == "started":
            return "s"
        return "d" if self.until == "done" else "w"

    @property
    def window_ms(self) -> int:
        """How long the key is taken; 0 if that depends on the task."""
        if self.until is None or isinstance(self.until, str):
            return 0
        return milliseconds(self.until, "until")

    @property
    def longest_ms(self) -> int:
        """The longest total delay by replacing a task; 0 sets no limit."""
        return 0 if self.longest is None else milliseconds(self.longest, "longest")


def checked_unique(unique: Any, signature: Signature) -> Unique | None:
    """Check the option `unique` against the signature of its task."""
    if unique is None:
        return None
    if not isinstance(unique, Unique):
        raise ConfigurationError(
            f"unique must be a Unique, such as Unique(until='started'), not {unique!r}"
        )
    if callable(unique.by):
        check_key_function(unique.by, "by", signature)
    elif unique.by != _ALL and signature.parameters:
        for name in unique.by:
            check_key_argument(name, "by", signature.parameters, signature.task)
    return unique


def unique_key(unique: Unique, signature: Signature, payload: bytes) -> str:
    """Return the unique key of a payload: the name of the task and a digest."""
    arguments = signature.decode(payload)
    value = _value(unique, signature, arguments)
    try:
        encoded = canonical_value(value)
    except NOT_JSON as error:
        raise KeyFailed(
            f"task '{signature.task}' cannot be unique by {_shown(unique.by)}: no form"
            f" in JSON: {error}"
        ) from error
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    return f"{signature.task}:{digest}"


def _value(unique: Unique, signature: Signature, arguments: Mapping[str, Any]) -> Any:
    by, task = unique.by, signature.task
    if callable(by):
        value = ask_key_function(by, "by", signature, arguments)
        if value is None:
            raise KeyFailed(
                f"task '{task}' cannot be unique by {_shown(by)}, which returned None:"
                " return what tells tasks apart"
            )
        return value
    if by == _ALL:
        return arguments if signature.whole is None else arguments[signature.whole]
    if signature.whole is not None:
        whole = arguments[signature.whole]
        arguments = _DECODE(canonical_value(whole))
    for name in by:
        check_key_argument(name, "by", tuple(arguments), task)
    return [arguments[name] for name in by]


_DECODE = msgspec.json.Decoder(dict[str, Any]).decode


def _names(by: Any) -> str | tuple[str, ...]:
    if by == _ALL:
        return _ALL
    names = (by,) if isinstance(by, str) else by
    if (
        not isinstance(names, (list, tuple))
        or not names
        or not all(isinstance(name, str) and name for name in names)
    ):
        raise ConfigurationError(
            "by must be 'args', the name of an argument, several names, or a function,"
            f" not {by!r}"
        )
    return tuple(sorted(set(names)))


def _shown(by: Any) -> str:
    if callable(by):
        return str(getattr(by, "__qualname__", by))
    return "its arguments" if by == _ALL else ", ".join(by)
