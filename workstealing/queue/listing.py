"""What those who browse ask of Redis: a few of many, and never a whole hash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.call import Call, Command
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import begun, number, raw, shown, tallies
from workstealing.queue.scripts import load_script

__all__ = (
    "CHUNK",
    "Fellow",
    "Glance",
    "Parking",
    "abilities_waited_for",
    "crew",
    "first_of",
    "glance",
    "in_hand",
    "length",
    "living",
    "position",
    "ranked",
    "score",
    "waited_for",
    "weigh",
    "workers_able",
)

CHUNK = 250
"""How many workers, tasks or abilities are asked about at once, at most."""


@dataclass(frozen=True, slots=True)
class Fellow:
    """Who a worker is, and how much it holds."""

    name: str
    description: dict[str, Any]
    """As it joined; empty if it is gone."""
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class Glance:
    """What a list shows of a task. Of long texts there are only both ends."""

    id: str
    envelope: bytes
    size: int
    """Bytes of the whole envelope."""
    worker: str
    token: str
    outcome: bytes
    attempts: int
    deaths: int
    steals: int


@dataclass(frozen=True, slots=True)
class Parking:
    """Tasks that wait for an ability, and how many workers have it by now."""

    ability: str
    tasks: int
    """Cancelled ones that were not passed over yet included."""
    workers: int


def crew(keys: QueueKeys, workers: Sequence[str]) -> Call[tuple[Fellow, ...]]:
    """Tell who some workers are, and how much each holds."""
    own = [key for name in workers for key in (keys.deque(name), keys.running(name))]

    def parse(reply: Any) -> tuple[Fellow, ...]:
        described = zip(workers, reply[::3], reply[1::3], reply[2::3], strict=True)
        return tuple(
            Fellow(name, _description(description), int(waiting), int(running))
            for name, description, waiting, running in described
        )

    script = load_script(__package__, "crew")
    return Call(script, (keys.members, *own), tuple(workers), parse)


def glance(
    keys: QueueKeys, ids: Sequence[str], *, most: int
) -> Call[tuple[Glance, ...]]:
    """Look at some tasks, whatever became of them."""

    def parse(reply: Any) -> tuple[Glance, ...]:
        return tuple(
            _glance(task_id, reply[5 * n : 5 * n + 5]) for n, task_id in enumerate(ids)
        )

    return Call(
        load_script(__package__, "glance"),
        (keys.task, keys.lock, keys.done, keys.history),
        (most, *ids),
        parse,
        is_raw=True,
    )


def in_hand(
    keys: QueueKeys, workers: Sequence[str], *, most: int
) -> Call[tuple[tuple[str, str, int], ...]]:
    """Name tasks that workers have in their hands: worker, id, begun at."""

    def parse(reply: Any) -> tuple[tuple[str, str, int], ...]:
        told = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
        return tuple(
            (workers[int(n)], shown(task_id), begun(at)) for n, task_id, at in told
        )

    script = load_script(__package__, "in_hand")
    return Call(script, tuple(map(keys.running, workers)), (most,), parse)


def ranked(
    key: str, *, most: int, latest: bool = False
) -> Call[tuple[tuple[str, int], ...]]:
    """Name the first or the last ids of a sorted set, and their milliseconds."""

    def parse(reply: Any) -> tuple[tuple[str, int], ...]:
        told = zip(reply[::2], reply[1::2], strict=True)
        return tuple((shown(task_id), number(ms) or 0) for task_id, ms in told)

    script = load_script(__package__, "ranked")
    return Call(script, (key,), (most, int(latest)), parse)


def abilities_waited_for(keys: QueueKeys, *, most: int) -> Command[tuple[str, ...]]:
    """Name abilities that tasks are parked for."""
    return Command(
        ("SRANDMEMBER", keys.parkings, most), lambda reply: tuple(sorted(_names(reply)))
    )


def waited_for(keys: QueueKeys, abilities: Sequence[str]) -> Call[tuple[Parking, ...]]:
    """Tell how many tasks wait for each of some abilities."""

    def parse(reply: Any) -> tuple[Parking, ...]:
        counted = zip(abilities, reply[::2], reply[1::2], strict=True)
        return tuple(
            Parking(ability, int(tasks), int(workers))
            for ability, tasks, workers in counted
        )

    own = map(keys.parked_for, abilities)
    script = load_script(__package__, "parkings")
    return Call(script, (keys.able, *own), tuple(abilities), parse)


def weigh(names: Sequence[str]) -> Call[tuple[int | None, ...]]:
    """Tell the bytes of some keys; None where the server does not tell."""
    return Call(
        load_script(__package__, "weigh"),
        tuple(names),
        (),
        lambda reply: tuple(None if int(one) < 0 else int(one) for one in reply),
    )


def first_of(key: str, *, most: int) -> Command[tuple[str, ...]]:
    """Name the first ids of a list."""
    return Command(("LRANGE", key, 0, most - 1), _names)


def length(key: str) -> Command[int]:
    """Tell how long a list is."""
    return Command(("LLEN", key), int)


def position(key: str, task_id: str, *, most: int) -> Command[int | None]:
    """Tell how many stand before a task in a list; None if too many, or it is not."""
    return Command(
        ("LPOS", key, task_id, "MAXLEN", most),
        lambda reply: None if reply is None else int(reply),
    )


def living(keys: QueueKeys, now_ms: int) -> Command[int]:
    """Count the workers whose lease has not ended."""
    return Command(("ZCOUNT", keys.workers, f"({now_ms}", "+inf"), int)


def score(key: str, name: str) -> Command[int | None]:
    """Read the milliseconds of a name in a sorted set."""
    return Command(
        ("ZSCORE", key, name),
        lambda reply: None if reply is None else number(reply),
    )


def workers_able(keys: QueueKeys, ability: str) -> Command[int]:
    """Count the workers that can run something."""
    return Command(("HGET", keys.able, ability), lambda reply: number(reply) or 0)


def _names(reply: Any) -> tuple[str, ...]:
    return tuple(map(shown, reply))


def _description(member: Any) -> dict[str, Any]:
    try:
        told = json.loads(shown(member) or "{}")
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _glance(task_id: str, reply: Sequence[Any]) -> Glance:
    envelope, size, lock, outcome, history = reply
    worker, _, token = shown(lock).rpartition("#")
    return Glance(
        task_id,
        raw(envelope),
        int(size),
        worker,
        token,
        raw(outcome),
        *tallies(history),
    )
