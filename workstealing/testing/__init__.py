"""Tools for tests, of users and of this project.

`MemoryQueue` and `in_memory` need no server. `rehearse` finds out what becomes of a
task that is killed and run again. Servers are started from a binary and end with the
test process; time and chance are set by the test. The pytest fixtures are in
`workstealing.testing.plugin`: `pytest_plugins = ["workstealing.testing.plugin"]` in a
`conftest.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.drivers.own_server import Server, ServerStartError, wait_until
from workstealing.testing.fakes import ManualClock, RecordingObserver, ScriptedChance
from workstealing.testing.groups import ClusterOfThree, SentinelGroup

if TYPE_CHECKING:
    from workstealing.testing.draining import Ran, WorkerDied
    from workstealing.testing.memory_queue import Memory, MemoryQueue, in_memory
    from workstealing.testing.rehearsing_tasks import (
        Rehearsal,
        StoryVerdict,
        rehearse,
    )
    from workstealing.testing.submitted_tasks import SubmittedTask

__all__ = (
    "ClusterOfThree",
    "ManualClock",
    "Memory",
    "MemoryQueue",
    "Ran",
    "RecordingObserver",
    "Rehearsal",
    "ScriptedChance",
    "SentinelGroup",
    "Server",
    "ServerStartError",
    "StoryVerdict",
    "SubmittedTask",
    "WorkerDied",
    "in_memory",
    "rehearse",
    "wait_until",
)

# Imported when they are first asked for: they need more than others do.
_MODULE_OF = {
    "Memory": "memory_queue",
    "MemoryQueue": "memory_queue",
    "Ran": "draining",
    "Rehearsal": "rehearsing_tasks",
    "StoryVerdict": "rehearsing_tasks",
    "SubmittedTask": "submitted_tasks",
    "WorkerDied": "draining",
    "in_memory": "memory_queue",
    "rehearse": "rehearsing_tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
