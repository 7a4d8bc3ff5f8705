"""`workstealing queue add`: submits a task, and waits for it with `--wait`."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any, TypeAlias

import click

from workstealing._printing import printable
from workstealing.cli.consoles import say
from workstealing.cli.options import (
    BadInput,
    clear_errors,
    imported_object,
    wait_options,
)
from workstealing.cli.shown_progress import shown_progress
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.queue_internals import internals_of
from workstealing.client.task import AsyncTask, Task, definition_of
from workstealing.drivers.connect import VARIABLES
from workstealing.errors import PayloadInvalid, TaskDead, TaskFailed

__all__ = ("add_command",)

_GivenTask: TypeAlias = Task[Any, Any] | AsyncTask[Any, Any]


@click.command("add")
@click.argument("where", metavar="APP:TASK")
@click.argument("words", nargs=-1, metavar="[JSON | NAME=VALUE]...")
@click.option(
    "--id", "task_id", help="Its id; if a task has that id already, nothing is added."
)
@click.option(
    "--again",
    is_flag=True,
    help="If the task with that id has ended, forget it and add this one.",
)
@click.option("--priority", type=int, help="0 urgent, 1 normal, 2 low.")
@click.option(
    "--in", "delay", type=float, metavar="SECONDS", help="Run it after this delay."
)
@click.option(
    "--expires",
    type=float,
    metavar="SECONDS",
    help="Do not begin it later than this after it is due.",
)
@wait_options("Wait for the task and print its result as JSON.")
@clear_errors()
def add_command(
    where: str,
    words: tuple[str, ...],
    task_id: str | None,
    again: bool,
    priority: int | None,
    delay: float | None,
    expires: float | None,
    wait: bool,
    timeout: float | None,
) -> None:
    """Submit a task and print its id.

    The payload is a JSON object, or NAME=VALUE for each argument. A VALUE is read as
    JSON (width=120, tags='["a"]') if that is valid and fits the argument, otherwise as
    a string.

    With --wait it prints the result instead and exits with 0; if the task fails, it
    prints the error to stderr and exits with 1; after --timeout it exits with 3.
    """
    payload, texts = _payload(words)
    task = imported_object(where, "APP:TASK, like app:resize", Task, AsyncTask)
    if again and task_id is None and definition_of(task).unique is None:
        raise BadInput("--again replaces a task that has ended: name it with --id")
    task = task.options(
        id=task_id, priority=priority, delay=delay, expires=expires, again=again
    )
    _fit_strings(task, payload, texts)
    try:
        added = _add(task, payload, task_id, wait, timeout)
    except (TaskFailed, TaskDead) as error:
        if error.traceback:
            click.echo(printable(error.traceback.rstrip()), err=True)
        raise
    click.echo(added)
    if not wait and _is_discarded(task):
        say(
            "Warning: no worker is alive. The embedded server, and the task with it, is"
            " gone when no process of this folder uses it any more. Start a worker"
            " first, or set REDIS_URL",
            err=True,
        )


def _add(
    task: _GivenTask,
    payload: dict[str, Any],
    task_id: str | None,
    wait: bool,
    timeout: float | None,
) -> str:
    """Return the id, or the result as JSON."""
    if isinstance(task, AsyncTask):
        return asyncio.run(_add_async(task, payload, task_id, wait, timeout))
    handle = task.submit(**payload)
    _warn_if_not_added(handle, task_id)
    if not wait:
        return handle.id
    with shown_progress(task.queue, handle.id):
        result = handle.result(timeout)
    return _json(task, result)


async def _add_async(
    task: AsyncTask[Any, Any],
    payload: dict[str, Any],
    task_id: str | None,
    wait: bool,
    timeout: float | None,
) -> str:
    handle = await task.submit(**payload)
    _warn_if_not_added(handle, task_id)
    if not wait:
        return handle.id
    with shown_progress(task.queue.sync(), handle.id):
        result = await handle.result(timeout)
    return _json(task, result)


def _warn_if_not_added(
    handle: TaskHandle[Any] | AsyncTaskHandle[Any], task_id: str | None
) -> None:
    if handle.is_new:
        return
    why = f"task {handle.id} has the same unique key"
    then = "see `workstealing queue why`"
    if handle.found_ended is not None:
        why = f"task {handle.id} has ended ({handle.found_ended.value}) and is kept"
        then = "give --again to forget it and add this one"
    elif task_id is not None:
        why = f"there is a task {task_id} already, whatever its arguments"
    say(f"Warning: nothing was added: {why}; {then}", err=True)


def _is_discarded(task: _GivenTask) -> bool:
    queue = task.queue
    if internals_of(queue).source.redis is not None or any(
        map(os.environ.get, VARIABLES)
    ):
        return False
    return not queue.sync().counts().leases


def _json(task: _GivenTask, result: Any) -> str:
    return definition_of(task).signature.encode_result(result).decode()


def _payload(words: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the payload, and the text of each value that was read as JSON."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return json.loads(words[0]), {}
        except ValueError as error:
            raise BadInput(f"the payload is not valid JSON: {error}") from error
    payload: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise BadInput(f"{word!r} is neither a JSON object nor NAME=VALUE")
        if name in payload:
            raise BadInput(f"{name} is given twice")
        try:
            payload[name] = json.loads(value)
            texts[name] = value
        except ValueError:
            payload[name] = value
    return payload, texts


def _fit_strings(
    task: _GivenTask, payload: dict[str, Any], texts: dict[str, str]
) -> None:
    """Let title=2001 be a string where the task expects one."""
    while True:
        try:
            definition_of(task).signature.encode((), payload)
        except PayloadInvalid as error:
            if error.field not in texts:
                raise
            payload[error.field] = texts.pop(error.field)
        else:
            return
