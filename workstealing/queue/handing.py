"""What a worker asks of Redis about a task for another, or one to run only once."""

from __future__ import annotations

import json

from workstealing.queue.call import Call
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import text
from workstealing.queue.scripts import load_script
from workstealing.tasks.attempt import Taken

__all__ = ("begin", "find_able", "hand_over")

_SAMPLE = 100


def find_able(
    keys: QueueKeys, ability: str, *, but: str, most: int = _SAMPLE
) -> Call[str]:
    """Name a live worker with an ability, not *but*; empty if none was found.

    It looks at a sample of the workers: where few of very many are able, it may miss
    them.
    """
    return Call(
        load_script(__package__, "find_able"),
        (keys.workers, keys.members, keys.able, keys.loads),
        (ability, json.dumps(ability), but, most),
        text,
    )


def hand_over(keys: QueueKeys, worker: str, task: Taken, to: str) -> Call[bool]:
    """Give a task that *worker* took to another, in front of all that one has."""
    return Call(
        load_script(__package__, "hand_over"),
        (
            keys.running(worker),
            keys.deque(to),
            keys.lock,
            keys.workers,
            keys.loads,
            keys.control,
            keys.stats,
            keys.bell,
        ),
        (task.id, f"{worker}#{task.token}", to),
        bool,
    )


def begin(keys: QueueKeys, worker: str, task: Taken) -> Call[bool]:
    """Say that a task that must not be run twice is run now; False if it may not."""
    return Call(
        load_script(__package__, "begin"),
        (keys.running(worker), keys.lock),
        (task.id, f"{worker}#{task.token}"),
        bool,
    )
