"""Finds out which queues a server has, by the names of some of its keys.

A server of millions of keys is not read to its end: only so many are looked at, and it
is told whether there are more.
"""

from __future__ import annotations

from typing import Any

from workstealing.errors import InvalidName
from workstealing.inspecting.values import QueuesFound
from workstealing.queue.call import Command, Flow, Nodes, ask
from workstealing.queue.replies import text
from workstealing.tasks.naming import checked_queue_name

__all__ = ("queues",)

_PATTERN = "ws:{*/*}:*"
_PAGE = 1000
# Of each node.
_PAGES = 20


def queues() -> Flow[QueuesFound]:
    """Look at some ten thousand keys of each node, and at no value."""
    found: set[tuple[str, str]] = set()
    is_all = True
    for node in Nodes.parse((yield Nodes())):
        cursor = "0"
        for _ in range(_PAGES):
            scan = ("SCAN", cursor, "MATCH", _PATTERN, "COUNT", _PAGE)
            cursor, some = yield from ask(Command(scan, _page, node))
            found |= some
            if cursor == "0":
                break
        is_all = is_all and cursor == "0"
    return QueuesFound(tuple(sorted(found)), is_all)


def _page(reply: Any) -> tuple[str, set[tuple[str, str]]]:
    cursor, keys = reply
    if isinstance(cursor, dict):  # a Cluster client tells it by node
        (cursor,) = cursor.values()
    found = set()
    for key in keys:
        name = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
        queue, _, run = name[len("ws:{") : name.find("}")].partition("/")
        try:
            found.add((checked_queue_name(queue), checked_queue_name(run)))
        except InvalidName:
            # Somebody else's key.
            continue
    return text(cursor), found
