"""Which queue a command is about: one of an application, or one by its name.

By its name no code of the application is imported, so an operator can look at a queue
from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from workstealing.cli.importing import imported
from workstealing.cli.refusing import BadInput
from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.errors import ConfigurationError
from workstealing.workers.plain import plain

__all__ = (
    "chosen",
    "imported_face",
    "imported_queue",
    "nothing_more",
    "queue_options",
    "single",
)

F = TypeVar("F", bound=Callable[..., Any])


def queue_options(metavar: str = "") -> Callable[[F], F]:
    """Give a command words, the first of which may name a queue, or else options."""
    options = (
        click.argument("words", nargs=-1, metavar=f"[APP:QUEUE] {metavar}".rstrip()),
        click.option("--queue", "name", help="The name of the queue; needs no code."),
        click.option("--run", help="Which run of it; `default` unless given."),
        click.option(
            "--redis",
            "url",
            help="Where it is; WORKSTEALING_URL, REDIS_URL or the embedded server"
            " unless given.",
        ),
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def chosen(
    words: tuple[str, ...], name: str | None, run: str | None, url: str | None
) -> tuple[TaskQueue, tuple[str, ...]]:
    """Return the queue, and the words that do not name it."""
    if name is not None:
        return TaskQueue(name, redis=url, run=run or "default"), words
    if not words or ":" not in words[0]:
        raise BadInput("name the queue: APP:QUEUE first, or --queue NAME")
    if run is not None or url is not None:
        raise BadInput("--run and --redis go with --queue NAME; APP:QUEUE has its own")
    return imported_queue(words[0]), words[1:]


def single(words: tuple[str, ...], what: str, default: str | None = None) -> str:
    """Return the one word that is left."""
    if not words and default is not None:
        return default
    if len(words) != 1:
        given = f"{len(words)} were given" if words else "none was given"
        raise BadInput(f"give one {what}; {given}")
    return words[0]


def nothing_more(words: tuple[str, ...]) -> None:
    """Refuse words that mean nothing."""
    if words:
        raise BadInput(f"unexpected: {' '.join(words)}")


def imported_queue(where: str) -> TaskQueue:
    """Import a queue; of an asyncio one, its sync face."""
    try:
        return plain(imported_face(where))
    except ConfigurationError as error:
        raise BadInput(str(error)) from error


def imported_face(where: str) -> TaskQueue | AsyncTaskQueue:
    """Import a queue, sync or asyncio."""
    found = imported(where, "APP:QUEUE, like app:queue")
    if isinstance(found, TaskQueue | AsyncTaskQueue):
        return found
    kind = type(found).__name__
    raise BadInput(f"{where} is a {kind}, not a TaskQueue or AsyncTaskQueue")
