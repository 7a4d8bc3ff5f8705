"""Tasks of Django, which has them since 6.0."""

from __future__ import annotations

import os
from typing import Any

from django.tasks import TaskContext, task


@task
def add(one: int, other: int = 1) -> int:
    return one + other


@task(priority=10, queue_name="letters")
async def greet(name: str) -> dict[str, Any]:
    return {"hello": name}


@task(takes_context=True)
def look(context: TaskContext) -> list[Any]:
    result = context.task_result
    return [result.id, context.attempt, result.status, result.worker_ids]


@task
def fail() -> None:
    raise LookupError("nothing there")


@task
def unspeakable() -> object:
    return object()


@task
def die() -> None:
    os._exit(7)


@task
def leave() -> None:
    raise SystemExit("enough")
