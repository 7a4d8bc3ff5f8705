"""Who a worker is, how far along it is, and when it ends by itself."""

from __future__ import annotations

import os
import re
import socket
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from workstealing._checks import checked_queue_name, checked_whole
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.shards import Shards
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import ConfigurationError, InvalidName, PoolBroken
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.attempt import Delivery

__all__ = (
    "STOP_SECONDS",
    "NameTaken",
    "Phase",
    "UntilEmpty",
    "WorkerIdentity",
    "checked_queue",
    "checked_until_empty",
    "default_pool",
    "identity_of",
    "new_incarnation",
    "worker_name",
)

STOP_SECONDS = 25.0
"""How long tasks may go on after a stop: less than most service managers wait."""

UntilEmpty = bool | Literal["all"]
"""Whether to end when nothing can run now, or ("all") when nothing is left at all."""


@dataclass(slots=True)
class WorkerIdentity:
    """A worker of one run of a queue, and the shard of it that it is in."""

    shards: Shards
    keys: QueueKeys
    """Those of its shard; only its loop moves it."""
    settings: QueueSettings
    name: str
    """`{pool}.{index}`"""
    incarnation: str
    """Tells it from an earlier worker of the same name."""
    description: dict[str, object]
    """For inspection: host, process, and what it can run as `abilities`."""

    @property
    def abilities(self) -> list[str]:
        """The tasks and versions that it can run, as `name@version`."""
        abilities = self.description["abilities"]
        assert isinstance(abilities, list)
        return abilities

    def keys_of(self, task: Delivery) -> QueueKeys:
        """Return the keys of the shard that a task is from."""
        return self.shards.all[task.shard]

    @property
    def lease(self) -> float:
        """Seconds without a renewal after which others take its tasks."""
        return self.settings.lease_ms / 1000


class NameTaken(PoolBroken):
    """Another process has joined the queue under the name of this worker."""

    def __init__(self, worker: str) -> None:
        super().__init__(
            f"another process has joined as worker {worker} and has its tasks now, so"
            " this one ends: give each process its own name (--pool, or name=)"
        )


class Phase(IntEnum):
    """How far along a worker is; it only ever goes forward."""

    WORKING = 0
    """It takes tasks and runs them."""
    QUIET = 1
    """It takes no more tasks and hands back waiting ones; running ones go on."""
    STOPPING = 2
    """It ends as soon as its running tasks have ended."""
    ENDING = 3
    """It ends now, and hands back its running tasks."""


def identity_of(
    queue: TaskQueue, name: str, incarnation: str | None = None
) -> WorkerIdentity:
    """Describe a worker of this process."""
    parts = internals_of(queue)
    return WorkerIdentity(
        parts.shards,
        parts.keys,
        parts.settings,
        name,
        incarnation or new_incarnation(),
        {
            "abilities": list(queue.registry.abilities()),
            "lease_ms": parts.settings.lease_ms,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": time.time_ns() // 1_000_000,
        },
    )


def checked_queue(queue: TaskQueue | AsyncTaskQueue) -> TaskQueue | AsyncTaskQueue:
    """Return a queue; refuse anything else, such as its name."""
    if not isinstance(queue, TaskQueue | AsyncTaskQueue):
        raise ConfigurationError(
            f"a worker needs the TaskQueue whose tasks it runs, got {queue!r}"
        )
    return queue


def checked_until_empty(value: UntilEmpty) -> UntilEmpty:
    """Return when to end; refuse what is neither a boolean nor `"all"`."""
    if value not in (True, False, "all"):
        raise ConfigurationError(
            f'until_empty must be True, False or "all", got {value!r}'
        )
    return value


def worker_name(pool: str, index: int) -> str:
    """Join and check a worker's name."""
    checked_queue_name(pool, "the name of a pool")
    if "#" in pool or ":" in pool:
        raise InvalidName(
            f"the name of a pool must not contain '#' or ':', got {pool!r}"
        )
    return f"{pool}.{checked_whole(index, 'index', 0)}"


def default_pool() -> str:
    """Return a name that no other process has."""
    host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname())[:40] or "host"
    return f"{host}-{os.getpid()}-{os.urandom(2).hex()}"


def new_incarnation() -> str:
    """Return what tells a worker from an earlier worker of the same name."""
    return os.urandom(8).hex()
