"""The definition of a task: its function, its name, and how to run it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import msgspec

from workstealing._checks import (
    checked_seconds,
    checked_task_name,
    checked_whole,
    did_you_mean,
)
from workstealing.errors import ConfigurationError, NotATask, PayloadInvalid
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.envelope import NORMAL, PRIORITIES
from workstealing.tasks.json_values import Json, encode_value
from workstealing.tasks.limits import Limit, LineNames
from workstealing.tasks.policy import checked_permission
from workstealing.tasks.retry import Restart, RetryPolicy, checked_restart
from workstealing.tasks.signature import Signature
from workstealing.tasks.unique import Unique, checked_unique

__all__ = (
    "TaskDefinition",
    "Upgrade",
    "checked_upgrades",
    "define",
    "refuse_options",
    "upgraded",
)


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
    accepts: Mapping[int, Upgrade] = field(default_factory=dict, hash=False)
    """Older versions whose payloads it takes, and the functions that upgrade them."""
    restart: Restart = "always"
    permission: str | None = None
    """The permission that its callers need, if the queue has a policy."""
    unique: Unique | None = None
    """What keeps a second task like it out of the queue."""
    expires: float | None = None
    """Seconds after it is due within which it may start; None sets no limit."""
    line_names: LineNames | None = None
    """Its limits and its fair key, if it has any."""
    on_give_up: Callable[[ExecutionContext, str], Any] | None = None
    """Called with the context and the reason when it is given up."""
    formerly: tuple[str, ...] = ()
    """Names that it had before."""
    brief: bool = False
    """Whether a process may run it in a spare moment."""
    ability: str = field(init=False)
    """How a worker announces that it can run this: `name@version`."""

    def __post_init__(self) -> None:
        # Made once, since every report names it.
        object.__setattr__(self, "ability", f"{self.name}@{self.version}")

    @property
    def abilities(self) -> tuple[str, ...]:
        """Return all that it can run: its own version and those that it accepts."""
        return tuple(
            f"{name}@{version}"
            for name in (self.name, *self.formerly)
            for version in (self.version, *self.accepts)
        )

    def decode(self, version: int, payload: Json) -> dict[str, Any]:
        """Read a payload of its own or of an accepted version, as arguments."""
        if version != self.version:
            payload = upgraded(self.name, self.accepts, version, payload)
        return self.signature.decode(payload)


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
    accepts: Mapping[int, Upgrade] | None = None,
    restart: Restart | None = None,
    idempotent: bool = True,
    permission: str | None = None,
    unique: Unique | None = None,
    expires: float | timedelta | None = None,
    limit: Limit | Sequence[Limit] | None = None,
    fair_key: str | Callable[..., Any] | None = None,
    fair_weight: float | Callable[..., Any] | None = None,
    on_give_up: Callable[[ExecutionContext, str], Any] | None = None,
    formerly: Collection[str] = (),
    brief: bool = False,
    **unknown: NoReturn,
) -> TaskDefinition:
    """Make a task of a function, with the options that `TaskQueue.task` describes.

    Type checkers refuse what is *unknown*; at run time it is refused by name.
    """
    if unknown:
        known = list(inspect.signature(define).parameters)[1:-1]
        refuse_options("a task", unknown, known)
    _refuse_what_cannot_run(function)
    checked_name = checked_task_name(name or _default_name(function))
    checked_version = checked_whole(version, "version", 1)
    retry = retries
    if not isinstance(retry, RetryPolicy):
        retry = RetryPolicy(retry, retry_on=retry_on, give_up_on=give_up_on)
    _refuse_rules_without_retries(retry)
    signature = Signature.of(function, checked_name)
    checked = checked_restart(restart, idempotent, retry.retries)
    return TaskDefinition(
        name=checked_name,
        version=checked_version,
        function=function,
        signature=signature,
        retry=retry,
        timeout=None if timeout is None else checked_seconds(timeout, "timeout"),
        priority=checked_whole(priority, "priority", 0, PRIORITIES - 1),
        is_coroutine=inspect.iscoroutinefunction(function),
        accepts=checked_upgrades(accepts or {}, checked_version),
        restart=checked,
        permission=checked_permission(permission),
        unique=checked_unique(unique, signature),
        expires=None if expires is None else checked_seconds(expires, "expires"),
        line_names=LineNames.of(checked_name, signature, limit, fair_key, fair_weight),
        on_give_up=_checked_listener(on_give_up),
        formerly=_checked_former_names(formerly, checked_name),
        brief=_checked_brief(brief, checked, signature),
    )


def _refuse_rules_without_retries(retry: RetryPolicy) -> None:
    """Refuse to say after which errors a task is tried again that never is."""
    if retry.retries:
        return
    plain = RetryPolicy()
    for name in ("retry_on", "give_up_on"):
        if getattr(retry, name) != getattr(plain, name):
            raise ConfigurationError(
                f"{name}= has no effect without retries: add retries=3, for example,"
                f" or leave {name}= out"
            )


def refuse_options(whose: str, unknown: Iterable[str], known: Sequence[str]) -> None:
    """Refuse unknown options; suggest the one that was meant, and list them all."""
    for name in unknown:
        near = did_you_mean(_ELSEWHERE.get(name, name), known)
        meant = f" Did you mean {near}=?" if near else ""
        raise ConfigurationError(
            f"{whose} has no option {name}=.{meant} It takes {', '.join(known)}"
        )


# Names from other libraries whose nearest name here, by spelling, would be wrong.
_ELSEWHERE = {"retry": "retries", "max_retries": "retries", "time_limit": "timeout"}


def _refuse_what_cannot_run(function: Any) -> None:
    if not inspect.isroutine(function):
        raise NotATask(f"a task is a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise NotATask(
            f"{function.__qualname__} is a generator: a task must return its whole"
            " result, for example as a list"
        )


def _checked_listener(on_give_up: Any) -> Any:
    is_awaited = inspect.iscoroutinefunction(on_give_up)
    # `@queue.task` has turned a task into a function by now.
    if is_awaited or hasattr(on_give_up, "submit"):
        raise ConfigurationError(
            f"on_give_up must be a function of (context, reason), not {on_give_up!r}:"
            " to await something, make it a task and give that to @queue.task"
        )
    if on_give_up is not None and not callable(on_give_up):
        raise ConfigurationError(
            f"on_give_up must be a function or a task, not {on_give_up!r}"
        )
    if on_give_up is not None:
        _refuse_other_parameters(on_give_up)
    return on_give_up


def _refuse_other_parameters(on_give_up: Any) -> None:
    try:
        parameters = inspect.signature(on_give_up)
    except ValueError:
        # Some that are written in C do not say what they take.
        return
    try:
        parameters.bind("context", "reason")
    except TypeError as error:
        raise ConfigurationError(
            f"on_give_up is called with the context and the reason, which"
            f" {on_give_up!r} does not take: {error}"
        ) from error


def _checked_former_names(names: Any, own: str) -> tuple[str, ...]:
    # A string is a collection too, of letters.
    if isinstance(names, (str, bytes)) or not isinstance(names, Collection):
        raise ConfigurationError(
            f'formerly must be a tuple of names, such as ("old.name",), not {names!r}'
        )
    checked = tuple(checked_task_name(name) for name in names)
    if own in checked:
        raise ConfigurationError(f"formerly has {own}, which is the task's name now")
    return checked


def _checked_brief(brief: Any, restart: Restart, signature: Signature) -> bool:
    if not isinstance(brief, bool):
        raise ConfigurationError(f"brief must be True or False, not {brief!r}")
    if brief and restart == "never":
        raise ConfigurationError(
            "a brief task is handed back when its spare moment is over and run again,"
            ' which restart="never" forbids: leave out brief=True or that'
        )
    if brief and signature.resources:
        names = ", ".join(signature.resources)
        raise ConfigurationError(
            f"a brief task cannot have resources ({names}): only workers open them"
        )
    return brief


def _default_name(function: Callable[..., Any]) -> str:
    if function.__name__ == "<lambda>":
        raise NotATask("a lambda has no name of its own: give name=")
    # The enclosing function (`factory.<locals>.resize`) means nothing to users.
    own_name = function.__qualname__.rpartition("<locals>.")[2]
    return f"{_module_name(function.__module__)}.{own_name}"


def _module_name(module: str) -> str:
    # A spawned process imports its parent's script under the second name.
    if module not in ("__main__", "__mp_main__"):
        return module
    main = sys.modules[module]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return Path(getattr(main, "__file__", None) or "__main__").stem


Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


def checked_upgrades(accepts: Any, version: int) -> Mapping[int, Upgrade]:
    """Return the upgrades of a task, the oldest version first."""
    if not isinstance(accepts, Mapping):
        raise ConfigurationError(
            f"accepts must be a dict, version to function, not {accepts!r}"
        )
    for old, upgrade in accepts.items():
        checked_whole(old, "an accepted version", 1)
        if old >= version:
            raise ConfigurationError(
                f"accepts has version {old}, which is not older than version {version}"
            )
        if not callable(upgrade):
            raise ConfigurationError(
                f"the upgrade from version {old} must be a function, not {upgrade!r}"
            )
    return MappingProxyType(dict(sorted(accepts.items())))


def upgraded(
    task: str, accepts: Mapping[int, Upgrade], version: int, payload: Json
) -> bytes:
    """Return the payload as one of the newest version."""
    values = _DECODE(payload)
    for old, upgrade in accepts.items():
        if old >= version:
            try:
                values = upgrade(values)
                if not isinstance(values, dict):
                    raise TypeError(f"it returned {type(values).__qualname__}")
            except Exception as error:
                raise PayloadInvalid(
                    task,
                    "",
                    f"cannot be upgraded from version {old}:"
                    f" {type(error).__qualname__}: {error}",
                ) from error
    return encode_value(values)


_DECODE = msgspec.json.Decoder(dict[str, Any]).decode
