"""How a worker comes, stays and goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workstealing.queue.call import Call
from workstealing.queue.dying import outcome_of_deaths, outcome_unknown
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import text, texts
from workstealing.queue.scripts import load_script
from workstealing.queue.settings import QueueSettings

__all__ = ("beat", "join", "leave")


def join(
    keys: QueueKeys,
    settings: QueueSettings,
    worker: str,
    incarnation: str,
    description: Mapping[str, Any],
) -> Call[int]:
    """Take a worker on; *description* has its `abilities`. Return the server's time."""
    return Call(
        load_script(__package__, "join"),
        (
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.workers,
            keys.members,
            keys.running(worker),
            keys.history,
            keys.able,
            keys.done,
            keys.dead,
            keys.cancels,
            keys.stats,
            keys.awaited,
        ),
        (
            worker,
            incarnation,
            settings.lease_ms,
            json.dumps(description),
            settings.deaths,
            outcome_of_deaths(settings),
            outcome_unknown(),
        ),
        int,
    )


def beat(
    keys: QueueKeys, settings: QueueSettings, worker: str, incarnation: str
) -> Call[tuple[str, ...] | None]:
    """Renew a lease; return the running tasks to stop, None if struck off."""
    return Call(
        load_script(__package__, "beat"),
        (keys.workers, keys.members, keys.running(worker), keys.cancels),
        (worker, incarnation, settings.lease_ms),
        lambda reply: None if text(reply[0]) == "lost" else texts(reply[1:]),
    )


def leave(
    keys: QueueKeys, worker: str, incarnation: str, *, most: int = 500, final: bool
) -> Call[tuple[int, int]]:
    """Hand back what a worker holds; return how many, and how many are left.

    If not *final* it hands back only what waits, and stays. What was begun and must
    not be run twice is given up.
    """
    return Call(
        load_script(__package__, "leave"),
        (
            *keys.inboxes,
            keys.task,
            keys.lock,
            keys.workers,
            keys.members,
            keys.loads,
            keys.deque(worker),
            keys.running(worker),
            keys.able,
            keys.stats,
            keys.bell,
            keys.done,
            keys.dead,
            keys.history,
            keys.cancels,
            keys.awaited,
        ),
        (worker, incarnation, most, int(final), outcome_unknown(left=True)),
        lambda reply: (int(reply[0]), int(reply[1])),
    )
