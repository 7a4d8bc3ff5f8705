"""The calls to Redis that only a node makes; its others are those of a worker."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import text, texts
from workstealing.queue.steps import Call, RedisCommand

__all__ = ("initialise", "is_initialised", "last_of", "names", "place", "snatch")

_script = queue_scripts(__package__)


def place(
    keys: QueueKeys, worker: str, jobs: Sequence[str], envelope: bytes = b""
) -> Call[tuple[str, ...] | None]:
    """Put jobs at the back of a deque; return those placed, None without the worker.

    Without an envelope, only jobs that wait in the inbox are placed.
    """

    def parse(reply: Sequence[object]) -> tuple[str, ...] | None:
        verdict, *placed = texts(reply)
        return tuple(placed) if verdict == "ok" else None

    script = _script("place")
    return Call(
        script,
        script.keys(keys, deque=keys.deque(worker), inbox=keys.inboxes[1]),
        script.arguments(worker=worker, envelope=envelope, ids=jobs),
        parse,
    )


def snatch(keys: QueueKeys, victim: str, thief: str, job: str) -> Call[int]:
    """Take the last job of a victim; return how many are left, or an error code."""
    script = _script("snatch")
    return Call(
        script,
        script.keys(keys, deque=keys.deque(victim), running=keys.running(thief)),
        script.arguments(victim=victim, thief=thief, id=job),
        int,
    )


def last_of(keys: QueueKeys, worker: str) -> RedisCommand[str]:
    """Return the last job of a deque; empty if there is none."""
    return RedisCommand(
        ("LINDEX", keys.deque(worker), -1), lambda reply: text(reply or "")
    )


def names(key: str) -> RedisCommand[tuple[str, ...]]:
    """Return all members of a sorted set."""
    return RedisCommand(("ZRANGE", key, 0, -1), texts)


def initialise(keys: QueueKeys) -> RedisCommand[int]:
    """Remember that there was an `init`."""
    return RedisCommand(("HSET", keys.control, "initialised", 1), int)


def is_initialised(keys: QueueKeys) -> RedisCommand[bool]:
    """Return whether there ever was an `init`."""
    return RedisCommand(("HEXISTS", keys.control, "initialised"), bool)
