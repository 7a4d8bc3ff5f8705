"""One SCAN of every node that any number of processes carry on together.

How far each node's scan has come is kept in Redis. Two recruits on the same page do it
twice; the second cannot move the place, and what it counted is not added. A key that is
there during a whole pass is seen in it. After a failover the new primary is scanned
from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workstealing.jobs.wording import Value, text
from workstealing.queue.call import Call, Command, Flow, Nodes, ask
from workstealing.queue.scripts import load_script

__all__ = ("Page", "SharedScan")


@dataclass(frozen=True, slots=True)
class Page:
    """Keys of one node, and where its scan goes on."""

    nodes: tuple[str, ...]
    node: str
    place: str
    following: str
    keys: list[Value]

    @property
    def ends_pass(self) -> bool:
        """Tell whether the node was seen to its end."""
        return self.following.endswith(":0")


class SharedScan:
    """Goes round all keys of a pattern, a page of one node at a time."""

    def __init__(self, state: str, pattern: str, count: int) -> None:
        self._state = state
        self._pattern = pattern
        self._count = count

    def page(self) -> Flow[Page]:
        """Read the page that is next."""
        nodes = Nodes.parse((yield Nodes()))
        position, place = yield from ask(self._call("scan_turn", *nodes))
        node, place = nodes[position], text(place)
        done, cursor = place.split(":")
        scan = ("SCAN", cursor, "MATCH", self._pattern, "COUNT", self._count)
        cursor, keys = yield from ask(Command(scan, _cursor_and_keys, node))
        passes = int(done) + (cursor == "0")
        return Page(nodes, node, place, f"{passes}:{cursor}", keys)

    def advance(self, page: Page, counts: Mapping[str, int]) -> Call[bool]:
        """Move the place, adding up *counts*; False if somebody moved it before."""
        flat = tuple(part for pair in counts.items() for part in pair)
        places = (page.node, page.place, page.following, int(page.ends_pass))
        script = load_script(__package__, "scan_advance")
        return Call(script, (self._state,), (*places, *flat), bool)

    def counts(self) -> Flow[tuple[dict[str, int], bool]]:
        """Return the counts of the last pass, and whether it was complete.

        Of a node that has not been seen to its end yet, what was counted so far.
        """
        nodes = Nodes.parse((yield Nodes()))
        state = yield from ask(Command(("HGETALL", self._state), _decoded))
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

    def _call(self, script: str, *arguments: str) -> Call[list[Any]]:
        return Call(load_script(__package__, script), (self._state,), arguments, list)


def _cursor_and_keys(reply: Any) -> tuple[str, list[Value]]:
    cursor, keys = reply
    if isinstance(cursor, dict):  # a Cluster client tells it by node
        (cursor,) = cursor.values()
    return text(cursor), list(keys)


def _decoded(reply: dict[Value, Value]) -> dict[str, str]:
    return {text(name): text(value) for name, value in reply.items()}
