"""`workstealing queue add`: put a task into its queue, and perhaps wait for it."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import click

from workstealing.cli.importing import imported
from workstealing.cli.refusing import BadInput, refusing
from workstealing.client.task import AsyncTask, Task
from workstealing.drivers.connect import VARIABLES
from workstealing.errors import PayloadInvalid, TaskDead, TaskFailed
from workstealing.workers.plain import plain

__all__ = ("add_command",)


@click.command("add")
@click.argument("where", metavar="APP:TASK")
@click.argument("words", nargs=-1, metavar="[JSON | NAME=VALUE]...")
@click.option("--id", "task_id", help="The dedupe key: a known id is not added again.")
@click.option("--priority", type=int, help="0 is urgent, 2 is whenever.")
@click.option("--in", "delay", type=float, metavar="SECONDS", help="When it is due.")
@click.option("--wait", is_flag=True, help="Wait, and print its result as JSON.")
@click.option("--timeout", type=float, metavar="SECONDS", help="How long to wait.")
@refusing()
def add_command(
    where: str,
    words: tuple[str, ...],
    task_id: str | None,
    priority: int | None,
    delay: float | None,
    wait: bool,
    timeout: float | None,
) -> None:
    """Put a task into its queue and print its id.

    The payload is one JSON object, or NAME=VALUE for each argument. A VALUE is taken
    as JSON (width=120, tags='["a"]') if it is that and fits, else as a string.

    With --wait it prints the result instead, and exits with 0; if the task fails, with
    1 and its error on stderr; if it does not end in time, with 3.
    """
    if timeout is not None and not wait:
        raise BadInput("--timeout goes with --wait")
    payload, texts = _payload(words)
    task = imported(where, "APP:TASK, like app:resize")
    if not isinstance(task, (Task, AsyncTask)):
        raise BadInput(f"{where} is a {type(task).__name__}, not a task of a queue")
    task = task.options(id=task_id, priority=priority, delay=delay)
    _as_wanted(task, payload, texts)
    try:
        added = _add(task, payload, wait, timeout)
    except (TaskFailed, TaskDead) as error:
        if error.traceback:
            click.echo(error.traceback.rstrip(), err=True)
        raise
    click.echo(added)
    if not wait and _is_in_vain(task):
        click.echo(
            "No worker is there, and the embedded server ends with this process, and"
            " this task with it: start a worker first, or set REDIS_URL.",
            err=True,
        )


def _add(
    task: Task[Any, Any] | AsyncTask[Any, Any],
    payload: dict[str, Any],
    wait: bool,
    timeout: float | None,
) -> str:
    """Return the id, or the result as JSON."""
    if isinstance(task, AsyncTask):
        return asyncio.run(_add_async(task, payload, wait, timeout))
    handle = task.submit(**payload)
    return _json(task, handle.result(timeout)) if wait else handle.id


async def _add_async(
    task: AsyncTask[Any, Any],
    payload: dict[str, Any],
    wait: bool,
    timeout: float | None,
) -> str:
    handle = await task.submit(**payload)
    return _json(task, await handle.result(timeout)) if wait else handle.id


def _is_in_vain(task: Task[Any, Any] | AsyncTask[Any, Any]) -> bool:
    queue = task.queue
    if queue.redis is not None or any(map(os.environ.get, VARIABLES)):
        return False
    return not plain(queue).counts().leases


def _json(task: Task[Any, Any] | AsyncTask[Any, Any], result: Any) -> str:
    return task.definition.signature.encode_result(result).decode()


def _payload(words: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the payload, and the texts of values that may be meant as such."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            return json.loads(words[0]), {}
        except ValueError as error:
            raise BadInput(f"the payload is not JSON: {error}") from error
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


def _as_wanted(
    task: Task[Any, Any] | AsyncTask[Any, Any],
    payload: dict[str, Any],
    texts: dict[str, str],
) -> None:
    """Let title=2001 be a string where the task wants one."""
    while True:
        try:
            task.definition.signature.encode((), payload)
        except PayloadInvalid as error:
            if error.field not in texts:
                raise
            payload[error.field] = texts.pop(error.field)
        else:
            return
