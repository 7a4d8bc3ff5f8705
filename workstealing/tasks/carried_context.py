"""Context variables that travel with tasks: the caller's value is the task's.

A queue is told which (`TaskQueue(…, carry=[tenant, locale])`). Their values, strings,
are read when a task is submitted and stand in its envelope, under their names; around
the task they are set, and reset afterwards. A variable that has no value where the task
is submitted, or is None, keeps its default in the task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from workstealing._checks import LONGEST_NAME
from workstealing.errors import ConfigurationError

__all__ = ("CarriedContext",)

_MOST = 16
_LONGEST = 1000


class CarriedContext:
    """The variables that a queue carries, by name."""

    def __init__(self, variables: Iterable[ContextVar[Any]]) -> None:
        self._by_name: dict[str, ContextVar[Any]] = {}
        for variable in variables:
            if not isinstance(variable, ContextVar):
                raise ConfigurationError(
                    f"carry must be a list of ContextVars, and {variable!r} is not one"
                )
            if variable.name in self._by_name:
                raise ConfigurationError(
                    f"carry has two variables with the name '{variable.name}'"
                )
            if not 0 < len(variable.name) <= LONGEST_NAME:
                raise ConfigurationError(
                    f"a variable to carry needs a name of 1 to {LONGEST_NAME}"
                    f" characters, not {variable.name!r}"
                )
            self._by_name[variable.name] = variable
        if len(self._by_name) > _MOST:
            raise ConfigurationError(f"carry takes {_MOST} variables at most")

    def values(self) -> dict[str, str] | None:
        """Return their values here and now; None if there are none."""
        values: dict[str, str] = {}
        for name, variable in self._by_name.items():
            value = variable.get(None)
            if value is None:
                continue
            if not isinstance(value, str) or len(value) > _LONGEST:
                raise ConfigurationError(
                    f"the context variable '{name}' travels with tasks, so it must be"
                    f" a string of up to {_LONGEST} characters, not {value!r:.100}"
                )
            values[name] = value
        return values or None

    @contextmanager
    def set_to(self, values: Mapping[str, str] | None) -> Iterator[None]:
        """Set those that a caller has sent; names that are not known are left out."""
        tokens = [
            (self._by_name[name], self._by_name[name].set(value))
            for name, value in (values or {}).items()
            if name in self._by_name
        ]
        try:
            yield
        finally:
            for variable, token in reversed(tokens):
                variable.reset(token)
