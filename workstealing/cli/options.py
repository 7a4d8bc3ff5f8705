"""What commands share: how they name a queue, import an application, ask, and fail.

A queue is one of an application, or given by its name. By its name no code of the
application is imported, so an operator can look at a queue from anywhere.

A command that fails prints one clear line to stderr, never a traceback, and exits with
a code:

| code | meaning |
|---|---|
| 1 | it could not be done: the task failed, Redis did, no worker is alive |
| 2 | bad input; nothing was done |
| 3 | it took longer than `--timeout` |
| 4 | a worker did not start: a resource could not be opened |
"""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from workstealing._checks import did_you_mean
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import (
    ConfigurationError,
    PayloadInvalid,
    PayloadTooLarge,
    ResourceFailed,
    ResultTimeout,
    WorkStealingError,
)

__all__ = (
    "BadInput",
    "chosen_queue",
    "clear_errors",
    "confirm",
    "imported_any_queue",
    "imported_object",
    "imported_queue",
    "is_interactive",
    "json_option",
    "limit_option",
    "no_more_words",
    "queue_options",
    "redis_option",
    "single_word",
    "wait_options",
    "with_options",
)

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON list of objects."
)
limit_option = click.option(
    "--limit", type=int, default=20, show_default=True, help="List at most this many."
)


class BadInput(click.ClickException):
    """The words or options of a command are wrong."""

    exit_code = 2


class _NotReady(click.ClickException):
    exit_code = 4


class _TimedOut(click.ClickException):
    exit_code = 3


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn errors of the library into those of a command; also a decorator."""
    try:
        yield
    except (ConfigurationError, PayloadInvalid, PayloadTooLarge) as error:
        raise BadInput(str(error)) from error
    except ResultTimeout as error:
        raise _TimedOut(str(error)) from error
    except ResourceFailed as error:
        raise _NotReady(str(error)) from error
    except WorkStealingError as error:
        raise click.ClickException(str(error)) from error


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Give a command several options, to be listed in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def redis_option(what: str) -> Callable[[F], F]:
    """Give a command `--redis`, with the server that is used without it."""
    default = "WORKSTEALING_URL, REDIS_URL or the embedded server"
    return click.option(
        "--redis", "url", metavar="URL", help=f"{what}  [default: {default}]"
    )


def queue_options(metavar: str = "", *, several: bool = False) -> Callable[[F], F]:
    """Let a command take a queue as its first word or by options, then more words.

    If it takes *several*, `--queue` may be repeated; to run them it needs their code.
    """
    of_several = "With --check: name of a queue; may be repeated."
    return with_options(
        click.argument("words", nargs=-1, metavar=f"[APP:QUEUE] {metavar}".rstrip()),
        click.option(
            "--queue",
            "names" if several else "name",
            multiple=several,
            metavar="NAME",
            help=of_several if several else "Name of the queue; imports no code.",
        ),
        click.option(
            "--run", metavar="NAME", help="Run of that queue.  [default: default]"
        ),
        redis_option("Redis of that queue."),
    )


def wait_options(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--wait`, and `--timeout`, which needs it."""
    wait_option = click.option("--wait", is_flag=True, help=what)
    timeout_option = click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="With --wait: exit with 3 if it takes longer.",
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def checked(*, wait: bool, timeout: float | None, **options: Any) -> None:
            if timeout is not None and not wait:
                raise BadInput("--timeout needs --wait")
            command(wait=wait, timeout=timeout, **options)

        return wait_option(timeout_option(checked))

    return decorate


def chosen_queue(
    words: tuple[str, ...], name: str | None, run: str | None, url: str | None
) -> tuple[TaskQueue, tuple[str, ...]]:
    """Return the queue, and the words that do not name it."""
    if name is not None:
        return TaskQueue(name, redis=url, run=run or "default"), words
    if not words or ":" not in words[0]:
        raise BadInput("name the queue: APP:QUEUE as the first word, or --queue NAME")
    if run is not None or url is not None:
        raise BadInput("--run and --redis need --queue NAME; APP:QUEUE has its own")
    return imported_queue(words[0]), words[1:]


def single_word(words: tuple[str, ...], what: str, default: str | None = None) -> str:
    """Return the only word that is left."""
    if not words and default is not None:
        return default
    if len(words) != 1:
        raise BadInput(f"give {what}, not {len(words)}" if words else f"give {what}")
    return words[0]


def no_more_words(words: tuple[str, ...]) -> None:
    """Refuse words that the command does not know."""
    if words:
        raise BadInput(f"unexpected: {' '.join(words)}")


def confirm(action: str, *, yes: bool) -> None:
    """Ask on the terminal whether to go on; *yes* answers beforehand."""
    if yes:
        return
    if not is_interactive():
        raise BadInput(f"to {action} without a terminal to ask on, give --yes")
    click.confirm(f"{action[:1].upper()}{action[1:]}?", abort=True, err=True)


def is_interactive() -> bool:
    """Return whether a person can answer a question."""
    return sys.stdin.isatty()


def imported_queue(where: str) -> TaskQueue:
    """Import a queue; for an `AsyncTaskQueue`, return its sync queue."""
    return imported_any_queue(where).sync()


def imported_any_queue(where: str) -> TaskQueue | AsyncTaskQueue:
    """Import a queue, sync or asyncio."""
    form = "APP:QUEUE, like app:queue"
    queue: TaskQueue | AsyncTaskQueue = imported_object(
        where, form, TaskQueue, AsyncTaskQueue
    )
    return queue


def imported_object(where: str, form: str, *kinds: type) -> Any:
    """Return what `MODULE:NAME` names, with the current folder searched first.

    Args:
        where: the name.
        form: how it must be written, for the error message.
        kinds: classes of which it must be one.

    Raises:
        ConfigurationError: there is no such object, it is of another class, or the
            import failed.
    """
    module_name, _, attribute = where.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"{where!r} must be {form}")
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigurationError(
            f"cannot import {module_name}: {_cause(error)}"
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(
                f"{module_name} has no {attribute}{_meant(found, name, kinds)}"
            )
        found = getattr(found, name)
    if not isinstance(found, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        kind = type(found).__name__
        article = "an" if kind[0] in "AEIOUaeiou" else "a"
        raise ConfigurationError(f"{where} is {article} {kind}, not a {wanted}")
    return found


def _meant(where: Any, name: str, kinds: tuple[type, ...]) -> str:
    """Name what was probably meant, if it is of the right class."""
    inside = getattr(where, "__dict__", {})
    near = did_you_mean(
        name, [each for each, value in inside.items() if isinstance(value, kinds)]
    )
    return f". Did you mean {near}?" if near else ""


def _cause(error: Exception) -> str:
    """Return what is wrong with a module, and where, in one line."""
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    # The line of the application, not the line of this library that refused it.
    last = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in ("importlib", "workstealing"):
            last = f"{frame.f_code.co_filename}, line {line}"
    if last is None or isinstance(error, (ImportError, SyntaxError)):
        return text
    return f"{text} ({last})"
