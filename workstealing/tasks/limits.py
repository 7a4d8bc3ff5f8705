"""How many of a task may run or begin, and whose turn is next: limits and fair keys.

A task with either waits in a line, whose name says all that decides about it: priority,
fair key, weight and limit keys. `LineNames` makes these names of the arguments of a
task, in the process that submits it.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from workstealing._checks import (
    LONGEST_NAME,
    checked_name,
    checked_number,
    checked_seconds,
    checked_whole,
    did_you_mean,
)
from workstealing.errors import ConfigurationError, KeyFailed
from workstealing.tasks.signature import Signature

__all__ = (
    "HEAVIEST",
    "KeySource",
    "Limit",
    "LineNames",
    "as_key",
    "checked_limit_key",
    "checked_limit_name",
    "checked_line",
    "fair_line",
    "numbers_text",
)

KeySource: TypeAlias = str | Callable[..., Any]
"""The name of an argument, or a function of the arguments."""

_NOT_IN_LIMITS = frozenset("=")
# Priority, fair key, weight and limit keys, with tabs between them.
_LINE = re.compile(r"[0-2]\t[^\t\0]*\t[0-9.e+-]*(\t[^\t\0]+)*")
HEAVIEST = 1000.0
"""The largest weight of a fair key."""
_PLAIN_KEYS = (str, int, float, Decimal, UUID, date)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many tasks may run at once, or begin in a time, in all workers together.

    Give `concurrency`, or `rate` and `period`. A rate is a bucket: after a rest up to
    `rate` tasks begin at once, then one as soon as its share of the period has passed.
    """

    concurrency: int | None = None
    """Tasks that may run at once."""
    rate: int | None = None
    """Tasks that may begin in each period."""
    period: float | timedelta | None = None
    """Seconds."""
    per: KeySource | None = None
    """What has a limit of its own: each value of an argument, by its name, or of a
    function of the arguments. None limits the task as a whole. A key of None is not
    limited."""
    name: str | None = None
    """Tasks that name the same limit share it. Made of the task and `per` unless
    given."""

    def __post_init__(self) -> None:
        numbers_text(self.concurrency, self.rate, self.period)
        if self.name is not None:
            checked_limit_name(self.name)
        if self.per is not None and not isinstance(self.per, str):
            _refuse_uncallable(self.per, "per")

    @property
    def numbers(self) -> str:
        """Return what stands in Redis: `5`, or `100/60000`."""
        return numbers_text(self.concurrency, self.rate, self.period)

    def named(self, task: str) -> Limit:
        """Return the limit with the name that it has by default."""
        if self.name is not None:
            return self
        per = self.per if isinstance(self.per, str) else _name_of(self.per)
        name = f"{task}/{per}" if per else task
        name = f"{name}:rate" if self.rate else name
        name = name.replace("=", "-")
        if len(name) > LONGEST_NAME:
            raise ConfigurationError(
                f"task '{task}': its limit has a long name, {name}: give it name="
            )
        return replace(self, name=name)


def numbers_text(concurrency: Any, rate: Any, period: Any) -> str:
    """Write the numbers of a limit as Redis has them; refuse those that are none."""
    if (concurrency is None) == (rate is None):
        raise ConfigurationError(
            "a limit has concurrency=, or rate= and period=: give one of them"
        )
    if concurrency is not None:
        if period is not None:
            raise ConfigurationError("period= goes with rate=, not with concurrency=")
        return str(checked_whole(concurrency, "concurrency", 1))
    checked_whole(rate, "rate", 1)
    if period is None:
        raise ConfigurationError(f"rate={rate} in what time? Give period=, in seconds")
    period_ms = round(checked_seconds(period, "period", most=366 * 86_400) * 1000)
    return f"{rate}/{max(1, period_ms)}"


def checked_limit_key(key: Any) -> str:
    """Return a key as it is written in Redis, for a value that an argument may have."""
    value = key.value if isinstance(key, Enum) else key
    if not isinstance(value, _PLAIN_KEYS):
        raise ConfigurationError(
            "the key of a limit must be a text or a number, as its argument is, not"
            f" {type(value).__qualname__}"
        )
    return as_key(str(value))


def checked_limit_name(name: Any) -> str:
    """Return the name of a limit; `=` stands before a key, so not in it."""
    return checked_name(name, "the name of a limit", _NOT_IN_LIMITS)


@dataclass(frozen=True, slots=True)
class LineNames:
    """Names the line of each submission of a task."""

    task: str
    limits: tuple[Limit, ...]
    fair_key: KeySource | None
    fair_weight: float | Callable[..., Any] | None

    @classmethod
    def of(
        cls, task: str, signature: Signature, limit: Any, fair_key: Any, weight: Any
    ) -> LineNames | None:
        """Check what a definition says; None if it says nothing."""
        given = () if limit is None else limit
        limits = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        for one in limits:
            if not isinstance(one, Limit):
                raise ConfigurationError(
                    f"task '{task}': limit= takes a Limit or a list of them, not"
                    f" {one!r}"
                )
            _check_source(one.per, "per", task, signature)
        limits = tuple(one.named(task) for one in limits)
        names = [one.name for one in limits]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"task '{task}' has two limits named {name}: give each its name="
                )
        _check_source(fair_key, "fair_key", task, signature)
        if weight is not None:
            if fair_key is None:
                raise ConfigurationError(
                    f"task '{task}': fair_weight= goes with fair_key="
                )
            if callable(weight):
                _check_source(weight, "fair_weight", task, signature)
            else:
                checked_number(weight, "fair_weight", most=HEAVIEST)
        if not limits and fair_key is None:
            return None
        return cls(task, limits, fair_key, weight)

    @property
    def numbers(self) -> dict[str, str]:
        """Return the numbers of each limit, as Redis has them."""
        return {str(limit.name): limit.numbers for limit in self.limits}

    def lines(
        self,
        signature: Signature,
        payloads: Sequence[bytes],
        priority: int,
        fair_key: str | None = None,
        weight: float | None = None,
    ) -> list[str]:
        """Return the line of each payload; empty if it has none.

        *fair_key* and *weight* are what the caller says of a submission.
        """
        decode = signature.decode
        if signature.whole is None:
            positional = signature.positional
        else:
            positional = (signature.whole,)
        return [
            self._line(_Values(decode(payload), positional), priority, fair_key, weight)
            for payload in payloads
        ]

    def _line(
        self,
        values: _Values,
        priority: int,
        fair_key: str | None,
        weight: float | None,
    ) -> str:
        keys = []
        for limit in self.limits:
            if limit.per is None:
                keys.append(str(limit.name))
            else:
                key = self._key(limit.per, values, f"of limit {limit.name}")
                if key is not None:
                    keys.append(f"{limit.name}={key}")
        fair = fair_key
        if fair is None and self.fair_key is not None:
            fair = self._key(self.fair_key, values, "of fair_key=")
        if fair is not None and weight is None and self.fair_weight is not None:
            weight = self._weight(values)
        if fair is None and not keys:
            return ""
        return _joined_line(priority, fair, weight, keys)

    def _key(self, source: KeySource, values: _Values, what: str) -> str | None:
        if isinstance(source, str):
            value = values.by_name[source]
        else:
            value = self._asked(source, values, what)
        if isinstance(value, Enum):
            value = value.value
        if value is None:
            return None
        if not isinstance(value, _PLAIN_KEYS):
            raise KeyFailed(
                f"task '{self.task}': the key {what} must be a text or a number, not"
                f" {type(value).__qualname__}: give a function that returns one"
            )
        return as_key(str(value))

    def _weight(self, values: _Values) -> float:
        if not callable(self.fair_weight):
            return float(self.fair_weight or 1)
        weight = self._asked(self.fair_weight, values, "of fair_weight=")
        try:
            return checked_number(weight, "the weight", most=HEAVIEST)
        except ConfigurationError as error:
            raise KeyFailed(f"task '{self.task}': {error}") from error

    def _asked(self, function: Callable[..., Any], values: _Values, what: str) -> Any:
        try:
            return values.given_to(function)
        except Exception as error:
            raise KeyFailed(
                f"task '{self.task}': the function {what} raised"
                f" {type(error).__qualname__}: {error}; nothing was submitted"
            ) from error


@dataclass(frozen=True, slots=True)
class _Values:
    """The arguments of one submission, as the task will get them."""

    by_name: Mapping[str, Any]
    positional: tuple[str, ...]

    def given_to(self, function: Callable[..., Any]) -> Any:
        """Call a function as the task is called."""
        args = [self.by_name[name] for name in self.positional]
        rest = self.by_name.keys() - set(self.positional)
        return function(*args, **{name: self.by_name[name] for name in rest})


def fair_line(priority: int, fair_key: str, weight: float | None) -> str:
    """Return the line of a task that has a fair key and nothing else."""
    return _joined_line(priority, fair_key, weight, ())


def checked_line(line: str) -> str:
    """Return the name of a line that anybody may have written, or none."""
    if line and not _LINE.fullmatch(line):
        raise ConfigurationError(f"not the name of a line: {line!r}")
    return line


def _joined_line(
    priority: int, fair: str | None, weight: float | None, keys: Sequence[str]
) -> str:
    shown = "" if weight is None or weight == 1 else f"{weight:.6g}"
    fair = "" if fair is None else as_key(fair)
    return "\t".join((str(priority), fair, shown, *keys))


def as_key(text: str) -> str:
    """Return a key as it is; by its hash if it is empty, long or not printable."""
    if 0 < len(text) <= LONGEST_NAME and text.isprintable():
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"sha256:{digest[:32]}"


def _check_source(source: Any, option: str, task: str, signature: Signature) -> None:
    """Refuse a key that no submission of the task could have."""
    if source is None:
        return
    if isinstance(source, str):
        if source not in signature.parameters:
            near = did_you_mean(source, signature.parameters)
            meant = f" Did you mean '{near}'?" if near else ""
            raise ConfigurationError(
                f"task '{task}': {option}= names the argument '{source}', which it does"
                f" not have.{meant}"
            )
        return
    _refuse_uncallable(source, option)
    try:
        rest = set(signature.parameters).difference(signature.positional)
        inspect.signature(source).bind(*signature.positional, **dict.fromkeys(rest))
    except TypeError as error:
        raise ConfigurationError(
            f"task '{task}': the function of {option}= is called with the arguments of"
            f" the task, and does not take them: {error}"
        ) from error
    except ValueError:
        # A function in C that does not say what it takes.
        return


def _refuse_uncallable(source: Any, option: str) -> None:
    if not callable(source):
        raise ConfigurationError(
            f"{option}= takes the name of an argument or a function, not {source!r}"
        )
    if inspect.iscoroutinefunction(source):
        raise ConfigurationError(
            f"{option}= takes a plain function: it is called when a task is submitted,"
            " and cannot be awaited there"
        )


def _name_of(function: Any) -> str:
    if function is None:
        return ""
    name = str(getattr(function, "__name__", type(function).__name__))
    return "key" if name == "<lambda>" else name
