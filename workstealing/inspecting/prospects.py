"""Who may run a task that waits: a worker in its shard or in another, a spare moment.

Workers move from a shard without tasks to one that has some, so a worker of another
shard may come and run it. The other shards are only read if no worker in the shard of
the task can run it.

Only the definition of a task says whether it is brief. Without the code of the tasks,
the answer names workers, and tasks for which a slice was too short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workstealing.errors import RedisError
from workstealing.inspecting.formatting import plural
from workstealing.queue import listing_calls
from workstealing.queue.inspection_calls import Trace
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.previews import preview_envelope

__all__ = ("Surroundings", "prospects_of")

_NOBODY = "It is not running because no worker is alive."
_SPARE = "It is brief: a process with a spare moment may run it."
_TOO_SHORT = "A slice was too short for it, so only workers run it for now."


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of the queue of a task, besides the keys of its own shard."""

    where: str
    """The options that name the queue on the command line."""
    others: Sequence[QueueKeys] = ()
    """The keys of the other shards."""
    definitions: Iterable[TaskDefinition] = ()
    """What this process can run of it."""


def prospects_of(
    keys: QueueKeys,
    around: Surroundings,
    task_id: str,
    seen: Trace,
    *,
    is_near: bool = True,
) -> Flow[list[str]]:
    """Say in sentences who may run a task that waits.

    Args:
        keys: those of its shard.
        around: what else is known of its queue.
        task_id: the id of the task.
        seen: what is known of the task.
        is_near: whether it runs as soon as a worker is free; otherwise only a queue or
            a shard without workers is mentioned.
    """
    ability = preview_envelope(seen.envelope).ability
    needed = ability if is_near else ""
    alive, hope = yield from _workers(keys, around.others, needed, seen.now_ms)
    if (yield from ask(listing_calls.is_field(keys.too_long, task_id))):
        return [*hope, _TOO_SHORT]
    is_brief = any(one.brief and ability in one.abilities for one in around.definitions)
    # A task that a worker has died with is left to workers, if there are any.
    if not is_brief or (alive and seen.deaths):
        return hope
    if hope == [_NOBODY]:
        return [_SPARE]
    return [*hope, _SPARE] if is_near else hope


def _workers(
    keys: QueueKeys, others: Sequence[QueueKeys], ability: str, now_ms: int
) -> Flow[tuple[int, list[str]]]:
    """Count the workers in its shard, and say which of all may run it."""
    alive, capable = yield from _count_workers([keys], ability, now_ms)
    if alive and not ability:
        return alive, []
    if alive and capable:
        return alive, [f"{_workers_alive(alive)}; the next free one will run it."]
    try:
        elsewhere, helpful = yield from _count_workers(others, ability, now_ms)
    except RedisError:
        # The node of one may be away, and that of the task is not.
        told = "No worker in its shard can run it now; another shard cannot be asked."
        return alive, [told]
    if not alive + elsewhere:
        return 0, [_NOBODY]
    if ability and not helpful:
        no_use = f"but none can run {ability}: it will be parked until a worker joins"
        return alive, [f"{_workers_alive(alive + elsewhere)}, {no_use} that can."]
    if alive:
        here = plural(alive, "worker is", "workers are")
        no_use = f"{here} in its shard, but none there can run {ability}"
        hope = "one from another shard can, and looks there within seconds"
        return alive, [f"{no_use}; {hope}."]
    who = "it" if elsewhere == 1 else "one"
    return 0, [
        "No worker is in its shard now.",
        f"{_workers_alive(elsewhere)}; {who} looks there within about a second.",
    ]


def _count_workers(
    shards: Sequence[QueueKeys], ability: str, now_ms: int
) -> Flow[tuple[int, int]]:
    """Count the workers that are alive, and those that can run a task."""
    alive = capable = 0
    for keys in shards:
        alive += yield from ask(listing_calls.count_living(keys, now_ms))
        if ability:
            capable += yield from ask(listing_calls.count_capable(keys, ability))
    return alive, capable


def _workers_alive(alive: int) -> str:
    return plural(alive, "worker is alive", "workers are alive")
