"""Limits and fair keys: how many tasks may run or start, and whose turn is next.

A task with either waits in a line. The name of the line holds all that decides when the
task starts: priority, fair key, weight and limit keys. `LineNames` makes that name from
the arguments of a task, in the process that submits it.
"""

from __future__ import annotations

import hashlib
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
)
from workstealing.errors import ConfigurationError, KeyFailed
from workstealing.tasks.json_values import canonical_value
from workstealing.tasks.key_functions import (
    ask_key_function,
    check_key_argument,
    check_key_function,
)
from workstealing.tasks.signature import Signature

__all__ = (
    "KeySource",
    "Limit",
    "LineNames",
    "as_key",
    "checked_limit_key",
    "checked_limit_name",
    "checked_line",
    "checked_weight",
    "fair_line",
    "numbers_text",
)

KeySource: TypeAlias = str | Callable[..., Any]
"""The name of an argument, or a function of the arguments."""

_NOT_IN_LIMITS = frozenset("=")
# Priority, fair key, weight and limit keys, with tabs between them.
_LINE = re.compile(r"[0-2]\t[^\t\0]*\t[0-9.e+-]*(\t[^\t\0]+)*")
_LIGHTEST, _HEAVIEST = 0.001, 1000.0
_PLAIN_KEYS = (str, int, float, Decimal, UUID, date)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many tasks may run at once, or start in a period, in all workers together.

    Give `concurrency`, or `rate` and `period`. A rate is a token bucket: after a rest,
    up to `rate` tasks start at once, and then one per `period / rate`.
    """

    concurrency: int | None = None
    """Tasks that may run at once."""
    rate: int | None = None
    """Tasks that may start in each period."""
    period: float | timedelta | None = None
    """Seconds."""
    per: KeySource | Sequence[str] | None = None
    """What has a limit of its own: each value of the argument of this name, of several
    arguments, or of a function, which is called with the arguments that it names. None
    limits the task as a whole. A task whose key is None is not limited."""
    name: str | None = None
    """Tasks whose limits have the same name share the limit. By default it is made from
    the name of the task and `per`."""

    def __post_init__(self) -> None:
        numbers_text(self.concurrency, self.rate, self.period)
        if self.name is not None:
            checked_limit_name(self.name)
        if self.per is not None:
            _refuse_source(self.per, "per")
        if isinstance(self.per, list):
            object.__setattr__(self, "per", tuple(self.per))

    @property
    def numbers(self) -> str:
        """Return the numbers as Redis has them: `5`, or `100/60000`."""
        return numbers_text(self.concurrency, self.rate, self.period)

    def named(self, task: str) -> Limit:
        """Return the limit with the name that it has by default."""
        if self.name is not None:
            return self
        per = _name_of(self.per)
        name = f"{task}/{per}" if per else task
        name = f"{name}:rate" if self.rate else name
        name = name.replace("=", "-")
        if len(name) > LONGEST_NAME:
            raise ConfigurationError(
                f"task '{task}': its limit has a long name, {name}: give it name="
            )
        return replace(self, name=name)


def numbers_text(concurrency: Any, rate: Any, period: Any) -> str:
    """Check the numbers of a limit, and write them as Redis has them."""
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
        raise ConfigurationError(
            f"rate={rate} needs a period. Give period=, in seconds"
        )
    period_ms = round(checked_seconds(period, "period", most=366 * 86_400) * 1000)
    return f"{rate}/{max(1, period_ms)}"


def checked_limit_key(key: Any) -> str:
    """Return a key as it is written in Redis, for a value that an argument may have."""
    value = key.value if isinstance(key, Enum) else key
    if not isinstance(value, _PLAIN_KEYS):
        raise ConfigurationError(
            "the key of a limit must be a string or a number, as its argument is, not"
            f" {type(value).__qualname__}"
        )
    return as_key(_key_text(value))


def checked_limit_name(name: Any) -> str:
    """Return the name of a limit; `=` stands before a key, so not in it."""
    return checked_name(name, "the name of a limit", _NOT_IN_LIMITS)


def checked_weight(weight: Any) -> float:
    """Return the weight of a fair key; a tiny one would delay its turn for ever."""
    exact = checked_number(weight, "fair_weight", most=_HEAVIEST)
    if exact < _LIGHTEST:
        raise ConfigurationError(
            f"fair_weight must be {_LIGHTEST} or more, up to {_HEAVIEST:,.0f}, not"
            f" {weight!r}"
        )
    return exact


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
        """Check the options of a definition; return None if it has none of them."""
        given = () if limit is None else limit
        limits = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        for one in limits:
            if not isinstance(one, Limit):
                raise ConfigurationError(
                    f"task '{task}': limit= takes a Limit or a list of them, not"
                    f" {one!r}"
                )
            _check_source(one.per, "per", signature)
        limits = tuple(one.named(task) for one in limits)
        names = [one.name for one in limits]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"task '{task}' has two limits named {name}: give each its name="
                )
        _check_source(fair_key, "fair_key", signature)
        if weight is not None:
            if fair_key is None:
                raise ConfigurationError(
                    f"task '{task}': fair_weight= goes with fair_key="
                )
            if callable(weight):
                check_key_function(weight, "fair_weight", signature)
            else:
                checked_weight(weight)
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

        *fair_key* and *weight* are options of the submission.
        """
        return [
            self._line(
                _Values(signature, signature.decode(payload)),
                priority,
                fair_key,
                weight,
            )
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
                key = values.key(limit.per, "per")
                if key is not None:
                    keys.append(f"{limit.name}={key}")
        fair = fair_key
        if fair is None and self.fair_key is not None:
            fair = values.key(self.fair_key, "fair_key")
        if fair is not None and weight is None and self.fair_weight is not None:
            weight = self._weight(values)
        if fair is None and not keys:
            return ""
        return _joined_line(priority, fair, weight, keys)

    def _weight(self, values: _Values) -> float:
        if not callable(self.fair_weight):
            return float(self.fair_weight or 1)
        weight = values.asked(self.fair_weight, "fair_weight")
        try:
            return checked_weight(weight)
        except ConfigurationError as error:
            raise KeyFailed(f"task '{self.task}': {error}") from error


@dataclass(frozen=True, slots=True)
class _Values:
    """The arguments of one task, as its function will get them."""

    signature: Signature
    by_name: Mapping[str, Any]

    def key(self, source: KeySource | Sequence[str], option: str) -> str | None:
        """Return the key of these arguments; None if the task is not limited."""
        if callable(source):
            value = self._plain(self.asked(source, option), option)
        elif isinstance(source, str):
            value = self._plain(self.by_name[source], option)
        else:
            each = [self._plain(self.by_name[name], option) for name in source]
            value = canonical_value(each).decode()
        return None if value is None else as_key(_key_text(value))

    def asked(self, function: Callable[..., Any], option: str) -> Any:
        """Call a function with the arguments that it names."""
        return ask_key_function(function, option, self.signature, self.by_name)

    def _plain(self, value: Any, option: str) -> Any:
        if isinstance(value, Enum):
            value = value.value
        if value is not None and not isinstance(value, _PLAIN_KEYS):
            raise KeyFailed(
                f"task '{self.signature.task}': the key of {option}= must be a string"
                f" or a number, not {type(value).__qualname__}: give a function that"
                " returns one"
            )
        return value


def fair_line(priority: int, fair_key: str, weight: float | None) -> str:
    """Return the line of a task that has a fair key and nothing else."""
    return _joined_line(priority, fair_key, weight, ())


def checked_line(line: str) -> str:
    """Return the name of a line, or ''; refuse a malformed one, read from Redis."""
    if line and not _LINE.fullmatch(line):
        raise ConfigurationError(f"not the name of a line: {line!r}")
    return line


def _joined_line(
    priority: int, fair: str | None, weight: float | None, keys: Sequence[str]
) -> str:
    shown = "" if weight is None or weight == 1 else f"{weight:.6g}"
    fair = "" if fair is None else as_key(fair)
    return "\t".join((str(priority), fair, shown, *keys))


def _key_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:
        # Python refuses to write out whole numbers of more than 4,300 digits.
        return hex(value)


def as_key(text: str) -> str:
    """Return a key as it is, or its hash if it is empty, long or not printable."""
    if 0 < len(text) <= LONGEST_NAME and text.isprintable():
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"sha256:{digest[:32]}"


def _check_source(source: Any, option: str, signature: Signature) -> None:
    """Refuse a source of keys that does not fit the signature of the task."""
    if source is None:
        return
    if callable(source):
        check_key_function(source, option, signature)
        return
    _refuse_source(source, option)
    for name in (source,) if isinstance(source, str) else source:
        check_key_argument(name, option, signature.parameters, signature.task)


def _refuse_source(source: Any, option: str) -> None:
    if callable(source) or isinstance(source, str):
        return
    if option != "per":
        raise ConfigurationError(
            f"{option}= takes the name of an argument or a function, not {source!r}"
        )
    if (
        not isinstance(source, (list, tuple))
        or not source
        or not all(isinstance(name, str) for name in source)
    ):
        raise ConfigurationError(
            "per= takes the name of an argument, several names or a function, not"
            f" {source!r}"
        )


def _name_of(source: Any) -> str:
    if source is None:
        return ""
    if isinstance(source, (str, tuple)):
        return source if isinstance(source, str) else "+".join(source)
    name = str(getattr(source, "__name__", type(source).__name__))
    return "key" if name == "<lambda>" else name
