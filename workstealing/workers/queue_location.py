"""Where a queue is defined, so that a child process can import it.

Nothing is pickled but these two names: a child imports the module as its parent did.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.memory_addresses import is_in_memory
from workstealing.errors import ConfigurationError

__all__ = ("QueueLocation", "global_of", "location_of")


@dataclass(frozen=True, slots=True)
class QueueLocation:
    """A global name in a module."""

    module: str
    name: str

    def find(self) -> TaskQueue | AsyncTaskQueue:
        """Import the module and return the queue."""
        module = sys.modules.get(self.module) or import_module(self.module)
        found: Any = module
        for part in self.name.split("."):
            found = getattr(found, part)
        assert isinstance(found, TaskQueue | AsyncTaskQueue)
        return found


def location_of(queue: TaskQueue | AsyncTaskQueue) -> QueueLocation:
    """Find the module in which a queue is a global."""
    # A child would find the URL that the queue has otherwise, and work there.
    if is_in_memory(internals_of(queue).source.redis):
        raise ConfigurationError(
            f"{queue!r} is in memory, where other processes cannot reach it: use"
            " kind='threads' or kind='asyncio', or a real server"
        )
    return global_of(queue, ", or use kind='threads'")


def global_of(queue: TaskQueue | AsyncTaskQueue, or_else: str = "") -> QueueLocation:
    """Find the module in which a queue is a global, wherever its tasks are."""
    for name, module in sorted(sys.modules.items(), key=_rank):
        if name == "__mp_main__" or module is None:
            continue
        for attribute, value in tuple(getattr(module, "__dict__", {}).items()):
            if value is queue:
                return _checked(name, attribute, or_else)
    raise ConfigurationError(
        f"processes import {queue!r} by its name: make it a global of a module{or_else}"
    )


def _rank(item: tuple[str, object]) -> tuple[bool, int]:
    # Longer names come first: a package that imports it from its module is not where
    # it is defined, but importing that module would do as well. A script comes last:
    # what it imports under its `if __name__ == "__main__":`, its children do not.
    name, _ = item
    return name == "__main__", -len(name)


def _checked(module: str, attribute: str, or_else: str) -> QueueLocation:
    main = sys.modules["__main__"]
    if module == "__main__" and not getattr(main, "__file__", None):
        raise ConfigurationError(
            "processes cannot import what was typed into an interpreter: put the queue"
            f" into a module{or_else}"
        )
    return QueueLocation(module, attribute)
