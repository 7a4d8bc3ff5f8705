"""One SCAN over all nodes, which any number of processes carry on together.

The position in each node's scan is kept in Redis. If two recruits take the same page,
it is done twice: the second cannot advance the position, and its counts are not added.
A key that exists during a whole pass is seen in it. After a failover the new primary is
scanned from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workstealing.jobs.job_keys import Value, lossless_text
from workstealing.jobs.redis_job import call_script
from workstealing.queue.steps import Call, Flow, Nodes, RedisCommand, ask

__all__ = ("ScanPage", "SharedScan")


@dataclass(frozen=True, slots=True)
class ScanPage:
    """Keys of one node, and where its scan continues."""

    nodes: tuple[str, ...]
    node: str
    place: str
    following: str
    keys: list[Value]

    @property
    def ends_pass(self) -> bool:
        """Whether the scan of the node has reached its end."""
        return self.following.endswith(":0")


class SharedScan:
    """Visits all keys of a pattern again and again, a page of one node at a time."""

    def __init__(self, state: str, pattern: str, count: int) -> None:
        self._keys = {"state": state}
        self._pattern = pattern
        self._count = count

    def page(self) -> Flow[ScanPage]:
        """Read the next page."""
        nodes = Nodes.parse((yield Nodes()))
        call = call_script("scan_turn", self._keys, list, nodes=nodes)
        position, place = yield from ask(call)
        node, place = nodes[position], lossless_text(place)
        done, cursor = place.split(":")
        scan = ("SCAN", cursor, "MATCH", self._pattern, "COUNT", self._count)
        cursor, keys = yield from ask(RedisCommand(scan, _cursor_and_keys, node))
        passes = int(done) + (cursor == "0")
        return ScanPage(nodes, node, place, f"{passes}:{cursor}", keys)

    def advance(self, page: ScanPage, counts: Mapping[str, int]) -> Call[bool]:
        """Advance the position and add *counts*; False if another recruit was first."""
        flat = tuple(part for pair in counts.items() for part in pair)
        return call_script(
            "scan_advance",
            self._keys,
            bool,
            node=page.node,
            place=page.place,
            following=page.following,
            over=int(page.ends_pass),
            counts=flat,
        )

    def counts(self) -> Flow[tuple[dict[str, int], bool]]:
        """Return the counts of the last pass, and whether it was complete.

        For a node whose first pass is not complete, these are the counts so far.
        """
        nodes = Nodes.parse((yield Nodes()))
        state = yield from ask(RedisCommand(("HGETALL", self._keys["state"]), _decoded))
        sums: dict[str, int] = {}
        complete = True
        for node in nodes:
            ended = not state.get(f"place|{node}", "0:0").startswith("0:")
            complete = complete and ended
            begin = f"{'last' if ended else 'now'}|{node}|"
            for name, number in state.items():
                if name.startswith(begin):
                    counted = name[len(begin) :]
                    sums[counted] = sums.get(counted, 0) + int(number)
        return sums, complete


def _cursor_and_keys(reply: Any) -> tuple[str, list[Value]]:
    cursor, keys = reply
    if isinstance(cursor, dict):  # a Cluster client returns it by node
        (cursor,) = cursor.values()
    return lossless_text(cursor), list(keys)


def _decoded(reply: dict[Value, Value]) -> dict[str, str]:
    return {lossless_text(name): lossless_text(value) for name, value in reply.items()}
