"""What only a node asks of Redis; the rest it asks as any worker does."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.queue.call import Call, Command
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import text, texts
from workstealing.queue.scripts import load_script

__all__ = ("initialise", "is_initialised", "last_of", "names", "place", "snatch")


def place(
    keys: QueueKeys, worker: str, jobs: Sequence[str], envelope: bytes = b""
) -> Call[tuple[str, ...] | None]:
    """Put jobs at the back of a deque; return those placed, None without the worker.

    Without an envelope, those that wait in the inbox.
    """

    def parse(reply: Sequence[object]) -> tuple[str, ...] | None:
        verdict, *placed = texts(reply)
        return tuple(placed) if verdict == "ok" else None

    return Call(
        load_script(__package__, "place"),
        (
            keys.deque(worker),
            keys.inboxes[1],
            keys.task,
            keys.lock,
            keys.loads,
            keys.members,
            keys.control,
            keys.stats,
        ),
        (worker, envelope, *jobs),
        parse,
    )


def snatch(keys: QueueKeys, victim: str, thief: str, job: str) -> Call[int]:
    """Take the last job of a victim; return how many are left, or why not."""
    return Call(
        load_script(__package__, "snatch"),
        (
            keys.deque(victim),
            keys.running(thief),
            keys.lock,
            keys.loads,
            keys.members,
            keys.control,
            keys.stats,
        ),
        (victim, thief, job),
        int,
    )


def last_of(keys: QueueKeys, worker: str) -> Command[str]:
    """Name the last job of a deque; empty if there is none."""
    return Command(("LINDEX", keys.deque(worker), -1), lambda reply: text(reply or ""))


def names(key: str) -> Command[tuple[str, ...]]:
    """Name all members of a sorted set."""
    return Command(("ZRANGE", key, 0, -1), texts)


def initialise(keys: QueueKeys) -> Command[int]:
    """Remember that there was an `init`."""
    return Command(("HSET", keys.control, "initialised", 1), int)


def is_initialised(keys: QueueKeys) -> Command[bool]:
    """Tell whether there ever was an `init`."""
    return Command(("HEXISTS", keys.control, "initialised"), bool)
