"""What is known of a task before it is called: its function and how to run it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from workstealing.errors import NotATask
from workstealing.tasks.checking import checked_seconds, checked_whole
from workstealing.tasks.envelope import NORMAL, PRIORITIES
from workstealing.tasks.naming import checked_task_name
from workstealing.tasks.retry import RetryPolicy
from workstealing.tasks.signature import Signature

__all__ = ("TaskDefinition", "define")


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A function under a name and a version. Made by `define`, which checks it."""

    name: str
    version: int
    function: Callable[..., Any]
    signature: Signature
    retry: RetryPolicy
    timeout: float | None
    priority: int
    is_coroutine: bool

    @property
    def ability(self) -> str:
        """Return how a worker announces that it can run this: `name@version`."""
        return f"{self.name}@{self.version}"


def define(
    function: Callable[..., Any],
    name: str | None = None,
    version: int = 1,
    *,
    retries: int | RetryPolicy = 0,
    retry_on: tuple[type[BaseException], ...] = (Exception,),
    give_up_on: tuple[type[BaseException], ...] = (),
    timeout: float | timedelta | None = None,
    priority: int = NORMAL,
) -> TaskDefinition:
    """Make a task of a function.

    Args:
        function: A plain or a coroutine function.
        name: `module.function` if it is not given. The module of a script that runs
            as `__main__` is named as if it were imported.
        version: What the payload means; raise it when the parameters change.
        retries: How often it is tried again. A `RetryPolicy` says all about it, and
            then `retry_on` and `give_up_on` have no say.
        retry_on: The errors after which it is tried again.
        give_up_on: Those after which it is not, whatever `retry_on` says.
        timeout: How long one attempt may last; None is for ever.
        priority: 0 (urgent), 1 or 2 (whenever).
    """
    _refuse_what_cannot_run(function)
    checked_name = checked_task_name(name or _default_name(function))
    return TaskDefinition(
        name=checked_name,
        version=checked_whole(version, "version", 1),
        function=function,
        signature=Signature.of(function, checked_name),
        retry=(
            retries
            if isinstance(retries, RetryPolicy)
            else RetryPolicy(retries, retry_on=retry_on, give_up_on=give_up_on)
        ),
        timeout=None if timeout is None else checked_seconds(timeout, "timeout"),
        priority=checked_whole(priority, "priority", 0, PRIORITIES - 1),
        is_coroutine=inspect.iscoroutinefunction(function),
    )


def _refuse_what_cannot_run(function: Any) -> None:
    if not inspect.isroutine(function):
        raise NotATask(f"a task is a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise NotATask(
            f"{function.__qualname__} yields: a task returns its result at once, as a"
            " list for example"
        )


def _default_name(function: Callable[..., Any]) -> str:
    if function.__name__ == "<lambda>":
        raise NotATask("a lambda has no name of its own: give name=")
    # What a function was defined in (`factory.<locals>.resize`) says nothing to users.
    own_name = function.__qualname__.rpartition("<locals>.")[2]
    return f"{_module_name(function.__module__)}.{own_name}"


def _module_name(module: str) -> str:
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return Path(getattr(main, "__file__", None) or "__main__").stem
