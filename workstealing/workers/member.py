"""Who a worker is, to its queue."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass

from workstealing.chance import Chance
from workstealing.client.queue import TaskQueue
from workstealing.drivers.patience import patience_of
from workstealing.drivers.sync import Driver
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.executing import Executor
from workstealing.workers.naming import new_incarnation

__all__ = ("Member", "executor_of", "member_of", "rest_seconds")

_REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """A worker of one run of a queue."""

    keys: QueueKeys
    settings: QueueSettings
    name: str
    """`{pool}.{index}`"""
    incarnation: str
    """Tells it from an earlier one of the same name."""
    description: dict[str, object]
    """For those who look: host, process, and what it can run as `abilities`."""


def member_of(queue: TaskQueue, name: str, incarnation: str | None = None) -> Member:
    """Describe a worker of this process."""
    return Member(
        queue.keys,
        queue.settings,
        name,
        incarnation or new_incarnation(),
        {
            "abilities": list(queue.registry.abilities()),
            "lease_ms": queue.settings.lease_ms,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": time.time_ns() // 1_000_000,
        },
    )


def executor_of(queue: TaskQueue, name: str, chance: Chance) -> Executor:
    """Return what knows the tasks of a queue, for a worker of that name."""
    return Executor(
        queue.admission, name, queue.name, chance, queue.settings.max_result
    )


def rest_seconds(driver: Driver) -> float:
    """Return how long a worker waits for the bell before it looks again."""
    # A client that gives up earlier would take every rest for a failure.
    patience = patience_of(driver.client)
    return _REST_SECONDS if not patience else min(_REST_SECONDS, patience / 2)
