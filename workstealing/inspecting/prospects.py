"""Who may run a task that waits: a worker in its shard, one in another, or nobody.

Workers leave a shard that has none of its tasks for another that has, so those of other
shards are hope as well. They are only asked for if there is nobody in its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.errors import RedisError
from workstealing.inspecting.formatting import plural
from workstealing.queue import listing_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, ask

__all__ = ("prospects_of",)


def prospects_of(
    keys: QueueKeys, others: Sequence[QueueKeys], ability: str, now_ms: int
) -> Flow[list[str]]:
    """Say in sentences who may run a task that waits.

    Args:
        keys: those of its shard.
        others: those of the other shards of its queue.
        ability: what it needs; empty if it is not its turn, so that only a queue that
            nobody works for is worth a word.
        now_ms: the time of the server.
    """
    alive, capable = yield from _count_workers([keys], ability, now_ms)
    if alive and not ability:
        return []
    if alive and capable:
        return [f"{_workers_alive(alive)}; the next free one will run it."]
    try:
        elsewhere, helpful = yield from _count_workers(others, ability, now_ms)
    except RedisError:
        # The node of one may be away, and that of the task is not.
        return ["No worker in its shard can run it now; another shard cannot be asked."]
    if not alive + elsewhere:
        return ["It is not running because no worker is alive."]
    if ability and not helpful:
        no_use = f"but none can run {ability}: it will be parked until a worker joins"
        return [f"{_workers_alive(alive + elsewhere)}, {no_use} that can."]
    if alive:
        here = plural(alive, "worker is", "workers are")
        no_use = f"{here} in its shard, but none there can run {ability}"
        return [
            f"{no_use}; one from another shard can, and looks there within seconds."
        ]
    who = "it" if elsewhere == 1 else "one"
    return [
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
