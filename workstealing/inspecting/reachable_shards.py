"""Reads those shards of a queue that can be reached, while a node may be away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from workstealing.drivers.translate import timed_out
from workstealing.errors import RedisUnavailable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, Owners

__all__ = ("read_reachable",)

T = TypeVar("T")


def read_reachable(
    shards: Sequence[QueueKeys], read: Callable[[QueueKeys], Flow[T]]
) -> Flow[tuple[dict[int, T], tuple[int, ...]]]:
    """Read something of each shard; return it by shard, and the shards that are away.

    A node that hangs is waited for once, not for each of its shards.

    Raises:
        RedisUnavailable: no shard can be reached.
    """
    if len(shards) == 1:
        return {shards[0].shard: (yield from read(shards[0]))}, ()
    owners = Owners.parse((yield Owners(tuple(keys.control for keys in shards))))
    found: dict[int, T] = {}
    failures: dict[int, RedisUnavailable] = {}
    hanging: dict[str, RedisUnavailable] = {}
    for keys, node in zip(shards, owners, strict=True):
        if node in hanging:
            failures[keys.shard] = hanging[node]
            continue
        try:
            found[keys.shard] = yield from read(keys)
        except RedisUnavailable as error:
            failures[keys.shard] = error
            # Any other failure takes no time, and may be about one slot of the node.
            if timed_out(error):
                hanging[node] = error
    if not found:
        raise next(iter(failures.values()))
    return found, tuple(failures)
