"""Closes old database connections before and after each task.

Django closes connections that are broken or too old before and after each request. A
worker has no requests, so its tasks do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.registry import Registry

__all__ = ("ClosingRegistry",)


class ClosingRegistry(Registry):
    """A registry whose tasks close old database connections, before and after."""

    def add(self, definition: TaskDefinition) -> None:
        """Add a definition; refuse a name and version that are taken."""
        closing = _closing_coroutine if definition.is_coroutine else _closing
        super().add(replace(definition, function=closing(definition.function)))


def _closing(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return run


def _closing_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    # The ORM keeps its connections in the thread that it runs in.
    close = sync_to_async(close_old_connections)

    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        await close()
        try:
            return await function(*args, **kwargs)
        finally:
            await close()

    return run
