"""Functions that make a key of the arguments of a task: `by=`, `per=`, `fair_key=`.

Such a function is called, where a task is submitted, with those arguments that it
names; where the payload is one object, with that object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from workstealing._checks import did_you_mean
from workstealing.errors import ConfigurationError, KeyFailed
from workstealing.tasks.signature import Signature

__all__ = ("ask_key_function", "check_key_argument", "check_key_function")


def check_key_function(
    function: Callable[..., Any], option: str, signature: Signature
) -> None:
    """Refuse a function that does not take the arguments of a task."""
    task = signature.task
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(
            f"task '{task}': {option}= takes a plain function: it is called when a task"
            " is submitted, and cannot be awaited there"
        )
    try:
        parameters = _parameters(function)
        if signature.whole is not None:
            inspect.signature(function).bind(None)
            return
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"task '{task}': the function of {option}= cannot be called with the"
            f" arguments of the task: {error}"
        ) from error
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
    for one in parameters:
        if one.kind is one.POSITIONAL_ONLY or (
            one.kind is one.VAR_POSITIONAL and not takes_all
        ):
            raise ConfigurationError(
                f"task '{task}': the function of {option}= is called with arguments by"
                f" name, and takes '{one}'"
            )
        if one.default is one.empty and one.kind not in (
            one.VAR_KEYWORD,
            one.VAR_POSITIONAL,
        ):
            check_key_argument(one.name, option, signature.parameters, task)


def check_key_argument(name: str, option: str, known: Sequence[str], task: str) -> None:
    """Refuse the name of an argument that a task does not have."""
    if name in known:
        return
    near = did_you_mean(name, known)
    meant = f". Did you mean '{near}'?" if near else ""
    raise ConfigurationError(
        f"task '{task}': {option}= names the argument '{name}', which it does not have:"
        f" it takes {', '.join(known) or 'none'}{meant}"
    )


def ask_key_function(
    function: Callable[..., Any],
    option: str,
    signature: Signature,
    arguments: Mapping[str, Any],
) -> Any:
    """Call a function with those arguments of a submission that it names."""
    try:
        if signature.whole is not None:
            return function(arguments[signature.whole])
        parameters = _parameters(function)
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            return function(**arguments)
        wanted = (one.name for one in parameters if one.name in arguments)
        return function(**{name: arguments[name] for name in wanted})
    except Exception as error:
        raise KeyFailed(
            f"task '{signature.task}': the function of {option}= raised"
            f" {type(error).__qualname__}: {error}; nothing was submitted"
        ) from error


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())
