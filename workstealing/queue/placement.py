"""Which shard of a queue a task is in, as a pure function of its id or of a key.

A drawn id carries its shard, `5.k3Jx…`, and stays there however many shards are added.
What a caller names (an id, a shard key, a unique key) is hashed. When shards are added,
a hash stays where it was or goes to one of the new shards (jump consistent hashing), so
there are few places where something may be that was named before.
"""

from __future__ import annotations

import hashlib
import math
import re
from binascii import crc_hqx
from collections.abc import Sequence
from itertools import count

__all__ = (
    "MOST_SHARDS",
    "by_node",
    "divided",
    "grouped",
    "id_in_shard",
    "shard_in_id",
    "shard_of_id",
    "shard_of_key",
    "shard_of_turn",
    "tag_of_shard",
)

MOST_SHARDS = 256
"""More than a Cluster has nodes; each costs a command whenever all are asked."""

# Fewer tasks than that are not worth a round trip to one more shard.
_WORTH_A_TRIP = 100
_DRAWN = re.compile(r"(0|[1-9][0-9]{0,3})\.[A-Za-z0-9]{12}(?![A-Za-z0-9])")
_64_BITS = (1 << 64) - 1
_SLOTS = 16384
_NEAR = 64
_GOLDEN = (math.sqrt(5) - 1) / 2


def shard_of_id(task_id: str, shards: int) -> int:
    """Return where a task is, if there were always so many shards."""
    shard = shard_in_id(task_id)
    if shard is not None and shard < shards:
        return shard
    return shard_of_key(task_id, shards)


def shard_in_id(task_id: str) -> int | None:
    """Return the shard that an id names, if it looks like one that was drawn."""
    found = _DRAWN.match(task_id)
    return None if found is None else int(found[1])


def id_in_shard(drawn: str, shard: int) -> str:
    """Return a drawn id that names its shard."""
    return f"{shard}.{drawn}"


def shard_of_key(key: str, shards: int) -> int:
    """Return the shard of what a caller has named."""
    digest = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8)
    state, shard, following = int.from_bytes(digest.digest(), "big"), 0, 0
    while following < shards:
        shard = following
        state = (state * 2862933555777941757 + 1) & _64_BITS
        following = int((shard + 1) * (1 << 31) / ((state >> 33) + 1))
    return shard


def tag_of_shard(whole: str, shard: int) -> str:
    """Return the hash tag of a shard, of a queue and run that are named *whole*.

    Tags drawn blindly would put half of eight shards on one of three nodes. So the
    slots of shards are spread as the leaves of a plant are: each is a golden section
    behind the one before, which leaves no wide gap, however many there are. Nodes have
    equal stretches of the slots if nobody has arranged it otherwise.
    """
    if not shard:
        return whole
    target = _slot(whole) + round(shard * _GOLDEN * _SLOTS)
    near = max(_NEAR, _SLOTS // (8 * (shard + 1)))
    for number in count():
        tag = f"{whole}/{shard}.{number}" if number else f"{whole}/{shard}"
        if (_slot(tag) - target) % _SLOTS < near:
            return tag
    raise AssertionError


def _slot(tag: str) -> int:
    return crc_hqx(tag.encode(errors="surrogatepass"), 0) % _SLOTS


def by_node(owners: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the shards of each node, given the node of each shard."""
    found: dict[str, list[int]] = {}
    for shard, owner in enumerate(owners):
        found.setdefault(owner, []).append(shard)
    return tuple(map(tuple, found.values()))


def shard_of_turn(turn: int, nodes: Sequence[Sequence[int]]) -> int:
    """Return whose turn it is: each node's, and on each node each of its shards'."""
    before, node = divmod(turn, len(nodes))
    shards = nodes[node]
    return shards[before % len(shards)]


def divided(tasks: int, nodes: Sequence[Sequence[int]]) -> list[int]:
    """Divide a submission into parts, one for each turn of nodes; return their sizes.

    All nodes have as many turns, and each shard has one. A short submission is one
    part, so that it costs no more than without shards.
    """
    turns = len(nodes) * max(map(len, nodes))
    used = max(1, min(turns, tasks // _WORTH_A_TRIP))
    size, more = divmod(tasks, used)
    return [size + (turn < more) for turn in range(used)]


def grouped(shards: Sequence[int]) -> dict[int, list[int]]:
    """Return the positions of the tasks of each shard."""
    found: dict[int, list[int]] = {}
    for position, shard in enumerate(shards):
        found.setdefault(shard, []).append(position)
    return found
