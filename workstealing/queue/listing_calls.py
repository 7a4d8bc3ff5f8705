"""What lists of workers and tasks read: a few entries, never a whole hash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import (
    begun,
    failures,
    number,
    raw,
    shown,
    tallies,
    waits_since,
)
from workstealing.queue.scripts import load_script
from workstealing.queue.steps import Call, RedisCommand

__all__ = (
    "CHUNK",
    "KeptOutcome",
    "ParkedAbility",
    "ScannedStretch",
    "ScannedTask",
    "TaskSummary",
    "WorkerInfo",
    "count_capable",
    "count_existing",
    "count_living",
    "count_members",
    "count_parked",
    "describe_workers",
    "ended",
    "first_in_lines",
    "first_of",
    "is_field",
    "length",
    "line_fronts",
    "list_running",
    "memory_usage",
    "outcome_kept",
    "parked_abilities",
    "position",
    "ranked",
    "scan_tasks",
    "score",
    "some_steps",
    "summarize",
    "which_run",
)

_script = queue_scripts(__package__)

# How many of the latest outcomes are searched for the end of the page before.
_FAR = 100_000

CHUNK = 250
"""How many workers, tasks or abilities are asked about at once, at most."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker says of itself, and how many tasks it holds."""

    name: str
    description: dict[str, Any]
    """As it joined; empty if it is gone."""
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class TaskSummary:
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
    failures: tuple[bytes, ...] = ()
    """The outcomes of its last failed attempts, the latest first."""
    since_ms: int = 0
    """When it was put back into the queue; 0: never."""


@dataclass(frozen=True, slots=True)
class ScannedTask:
    """What a scan tells of a task. Of a long envelope there are only both ends."""

    id: str
    envelope: bytes
    worker: str
    is_delayed: bool
    is_dead: bool
    needs: str
    """The ability that it is parked for."""
    is_aside: bool
    """It was put aside, because its name is or was paused."""


@dataclass(frozen=True, slots=True)
class ScannedStretch:
    """Some of the tasks that are kept, and where the next ones are."""

    now_ms: int
    cursor: str
    """Where to go on; "0" at the end."""
    size: int
    """Bytes of the envelopes that the server has looked at."""
    tasks: tuple[ScannedTask, ...]


@dataclass(frozen=True, slots=True)
class ParkedAbility:
    """How many tasks are parked for an ability, and how many workers have it now."""

    ability: str
    tasks: int
    """Including cancelled ones that were not passed over yet."""
    workers: int


@dataclass(frozen=True, slots=True)
class KeptOutcome:
    """A task that has ended, and until when that is known."""

    id: str
    expires_ms: int
    written: bytes
    """As it stands in its list; the next page begins behind it."""


def describe_workers(
    keys: QueueKeys, workers: Sequence[str]
) -> Call[tuple[WorkerInfo, ...]]:
    """Describe workers, and count the tasks that each holds."""
    script = _script("describe_workers")
    own = [key for name in workers for key in (keys.deque(name), keys.running(name))]

    def parse(reply: Any) -> tuple[WorkerInfo, ...]:
        described = zip(workers, reply[::3], reply[1::3], reply[2::3], strict=True)
        return tuple(
            WorkerInfo(name, _description(description), int(waiting), int(running))
            for name, description, waiting, running in described
        )

    return Call(
        script, script.keys(keys, pairs=own), script.arguments(names=workers), parse
    )


def list_running(
    keys: QueueKeys, workers: Sequence[str], *, most: int
) -> Call[tuple[tuple[str, str, int], ...]]:
    """Name tasks that workers have taken: worker, id, when it was taken."""
    script = _script("list_running")
    own = tuple(map(keys.running, workers))

    def parse(reply: Any) -> tuple[tuple[str, str, int], ...]:
        listed = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
        return tuple(
            (workers[int(n)], shown(task_id), begun(at)) for n, task_id, at in listed
        )

    return Call(
        script, script.keys(keys, running=own), script.arguments(most=most), parse
    )


def summarize(
    keys: QueueKeys, ids: Sequence[str], *, most: int
) -> Call[tuple[TaskSummary, ...]]:
    """Summarize tasks, ended or not."""
    script = _script("summarize")

    def parse(reply: Any) -> tuple[TaskSummary, ...]:
        return tuple(
            _summary(task_id, reply[5 * n : 5 * n + 5]) for n, task_id in enumerate(ids)
        )

    return Call(
        script,
        script.keys(keys),
        script.arguments(most=most, ids=ids),
        parse,
        is_raw=True,
    )


def scan_tasks(
    keys: QueueKeys, cursor: str, *, count: int, most: int = 512
) -> Call[ScannedStretch]:
    """Look at about *count* of the tasks that are not over, and of dead letters."""
    script = _script("scan_tasks")

    def parse(reply: Any) -> ScannedStretch:
        now, following, size, *flat = reply
        tasks = (flat[n : n + 7] for n in range(0, len(flat), 7))
        scanned = tuple(
            ScannedTask(
                shown(task_id),
                raw(envelope),
                shown(lock).rpartition("#")[0],
                bool(delayed),
                bool(dead),
                shown(needs),
                bool(aside),
            )
            for task_id, envelope, lock, delayed, dead, needs, aside in tasks
        )
        return ScannedStretch(int(now), shown(following), int(size), scanned)

    return Call(
        script,
        script.keys(keys),
        script.arguments(cursor=cursor, count=count, most=most),
        parse,
        is_raw=True,
    )


def which_run(keys: QueueKeys, worker: str, ids: Sequence[str]) -> RedisCommand[Any]:
    """Tell which of some tasks a worker has taken: a flag for each."""
    return RedisCommand(
        ("HMGET", keys.running(worker), *ids),
        lambda reply: [at is not None for at in reply],
    )


def parked_abilities(keys: QueueKeys, *, most: int) -> RedisCommand[tuple[str, ...]]:
    """Name abilities that tasks are parked for."""
    return RedisCommand(
        ("SRANDMEMBER", keys.parked_abilities, most),
        lambda reply: tuple(sorted(_names(reply))),
    )


def count_parked(
    keys: QueueKeys, abilities: Sequence[str]
) -> Call[tuple[ParkedAbility, ...]]:
    """Count the tasks that are parked for each ability."""
    script = _script("count_parked")
    own = tuple(map(keys.parked_for, abilities))

    def parse(reply: Any) -> tuple[ParkedAbility, ...]:
        counted = zip(abilities, reply[::2], reply[1::2], strict=True)
        return tuple(
            ParkedAbility(ability, int(tasks), int(workers))
            for ability, tasks, workers in counted
        )

    return Call(
        script,
        script.keys(keys, parked_for=own),
        script.arguments(names=abilities),
        parse,
    )


def count_capable(keys: QueueKeys, ability: str) -> RedisCommand[int]:
    """Count the workers that have an ability."""
    return RedisCommand(
        ("HGET", keys.abilities, ability), lambda reply: number(reply) or 0
    )


def count_members(keys: QueueKeys) -> RedisCommand[int]:
    """Count the workers that have joined, and have neither left nor been struck off."""
    return RedisCommand(("HLEN", keys.members), int)


def count_living(keys: QueueKeys, now_ms: int) -> Call[int]:
    """Count the workers whose lease has not ended."""
    script = _script("count_living")
    return Call(script, script.keys(keys), script.arguments(at_ms=now_ms), int)


def count_existing(names: Sequence[str]) -> RedisCommand[int]:
    """Count the keys that exist, among some of one queue."""
    return RedisCommand(("EXISTS", *names), int)


def ranked(
    key: str, *, most: int, latest: bool = False, first: int = 0
) -> Call[tuple[tuple[str, int], ...]]:
    """Name ids of a sorted set, from the first or the last, and their milliseconds."""
    script = load_script(__package__, "ranked")

    def parse(reply: Any) -> tuple[tuple[str, int], ...]:
        listed = zip(reply[::2], reply[1::2], strict=True)
        return tuple((shown(task_id), number(ms) or 0) for task_id, ms in listed)

    return Call(
        script,
        script.keys(ranks=key),
        script.arguments(most=most, latest=int(latest), first=first),
        parse,
    )


def ended(
    key: str, *, most: int, latest: bool = False, after: bytes = b""
) -> Call[tuple[KeptOutcome, ...]]:
    """Name tasks that have ended, from the first or the last, or behind another."""
    script = load_script(__package__, "ended")

    def parse(reply: Any) -> tuple[KeptOutcome, ...]:
        listed = [(raw(one), *shown(one).rpartition(" ")[::2]) for one in reply]
        return tuple(
            KeptOutcome(task_id, number(ms) or 0, written)
            for written, task_id, ms in listed
        )

    return Call(
        script,
        script.keys(outcome_times=key),
        script.arguments(most=most, latest=int(latest), after=after, far=_FAR),
        parse,
        is_raw=True,
    )


def outcome_kept(keys: QueueKeys, task_id: str) -> Call[int | None]:
    """Read when an outcome expires; None if it is not among the latest."""
    script = _script("outcome_kept")
    return Call(
        script,
        script.keys(keys),
        script.arguments(id=task_id),
        lambda reply: None if int(reply) < 0 else int(reply),
    )


def score(key: str, name: str) -> RedisCommand[int | None]:
    """Read the milliseconds of a name in a sorted set."""
    return RedisCommand(
        ("ZSCORE", key, name),
        lambda reply: None if reply is None else number(reply),
    )


def is_field(key: str, name: str) -> RedisCommand[bool]:
    """Tell whether a hash has a field."""
    return RedisCommand(("HEXISTS", key, name), bool)


def first_of(key: str, *, most: int) -> RedisCommand[tuple[str, ...]]:
    """Name the first ids of a list."""
    return RedisCommand(("LRANGE", key, 0, most - 1), _names)


def first_in_lines(keys: QueueKeys, *, most: int) -> RedisCommand[dict[str, bytes]]:
    """Name some tasks that wait in lines, and the line of each."""

    def parse(reply: Any) -> dict[str, bytes]:
        split = (raw(member).split(b"\0", 2) for member in reply)
        return {shown(task_id): line for line, _, task_id in split}

    return RedisCommand(("ZRANGE", keys.lines, 0, most - 1), parse)


def line_fronts(keys: QueueKeys, *, most: int) -> Call[tuple[str, ...]]:
    """Name the first task of each of some lines."""
    script = _script("line_fronts")
    return Call(script, script.keys(keys), script.arguments(most=most), _names)


def some_steps(
    keys: QueueKeys, cursor: str, *, count: int
) -> RedisCommand[tuple[str, tuple[str, ...]]]:
    """Name about *count* steps that wait for others, and where the next ones are."""
    return RedisCommand(
        ("HSCAN", keys.steps, cursor, "COUNT", count),
        lambda reply: (str(int(reply[0])), _field_names(reply[1])),
    )


def length(key: str) -> RedisCommand[int]:
    """Count the ids of a list."""
    return RedisCommand(("LLEN", key), int)


def position(key: str, task_id: str, *, most: int) -> RedisCommand[int | None]:
    """Count the ids before a task in a list; None beyond *most*, or if it is absent."""
    return RedisCommand(
        ("LPOS", key, task_id, "MAXLEN", most),
        lambda reply: None if reply is None else int(reply),
    )


def memory_usage(names: Sequence[str]) -> Call[tuple[int | None, ...]]:
    """Read the bytes that some keys take; None where the server does not say."""
    script = load_script(__package__, "memory_usage")
    return Call(
        script,
        script.keys(measured=names),
        script.arguments(),
        lambda reply: tuple(None if int(one) < 0 else int(one) for one in reply),
    )


def _field_names(reply: Any) -> tuple[str, ...]:
    # redis-py makes a dict of what is scanned, unless it is told not to.
    return _names(reply if isinstance(reply, dict) else reply[::2])


def _names(reply: Any) -> tuple[str, ...]:
    return tuple(map(shown, reply))


def _description(member: Any) -> dict[str, Any]:
    try:
        description = json.loads(shown(member) or "{}")
    except (ValueError, RecursionError):
        return {}
    return description if isinstance(description, dict) else {}


def _summary(task_id: str, reply: Sequence[Any]) -> TaskSummary:
    envelope, size, lock, outcome, history = reply
    worker, _, token = shown(lock).rpartition("#")
    return TaskSummary(
        task_id,
        raw(envelope),
        int(size),
        worker,
        token,
        raw(outcome),
        *tallies(history),
        failures(history),
        waits_since(history),
    )
