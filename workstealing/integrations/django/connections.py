"""Lets tasks leave the database connections of a worker in order.

Django closes connections that are broken or too old at the ends of requests. A worker
has no requests, so this is done at both ends of each task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from workstealing.tasks.registry import Registry
from workstealing.tasks.task import TaskDefinition

__all__ = ("TidyRegistry",)


class TidyRegistry(Registry):
    """A registry whose tasks close old connections, before and after."""

    def add(self, definition: TaskDefinition) -> None:
        """Take up a definition; a name and version that are taken are refused."""
        tidy = _tidy_coroutine if definition.is_coroutine else _tidy
        super().add(replace(definition, function=tidy(definition.function)))


def _tidy(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return run


def _tidy_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    # The ORM keeps connections in the thread that it runs in.
    close = sync_to_async(close_old_connections)

    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        await close()
        try:
            return await function(*args, **kwargs)
        finally:
            await close()

    return run
