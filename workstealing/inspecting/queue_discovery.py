"""Finds the queues of a server by scanning some of its keys.

A server with millions of keys is not scanned to the end: the number of keys is bounded,
and the result says whether there were more.
"""

from __future__ import annotations

from typing import Any

from workstealing._checks import checked_queue_name
from workstealing.errors import InvalidName
from workstealing.inspecting.views import QueuesFound
from workstealing.queue.replies import text
from workstealing.queue.steps import Flow, Nodes, RedisCommand, ask

__all__ = ("find_queues",)

_PATTERN = "ws:{*/*}:*"
_PAGE = 1000
_PAGES_PER_NODE = 20


def find_queues() -> Flow[QueuesFound]:
    """Scan some ten thousand keys of each node; read no value."""
    found: set[tuple[str, str]] = set()
    is_all = True
    for node in Nodes.parse((yield Nodes())):
        cursor = "0"
        for _ in range(_PAGES_PER_NODE):
            scan = ("SCAN", cursor, "MATCH", _PATTERN, "COUNT", _PAGE)
            cursor, some = yield from ask(RedisCommand(scan, _page, node))
            found |= some
            if cursor == "0":
                break
        is_all = is_all and cursor == "0"
    return QueuesFound(tuple(sorted(found)), is_all)


def _page(reply: Any) -> tuple[str, set[tuple[str, str]]]:
    cursor, keys = reply
    if isinstance(cursor, dict):  # a Cluster client returns one per node
        (cursor,) = cursor.values()
    found = set()
    for key in keys:
        name = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
        queue, _, run = name[len("ws:{") : name.find("}")].partition("/")
        try:
            found.add((checked_queue_name(queue), checked_queue_name(run)))
        except InvalidName:
            # The key of another application.
            continue
    return text(cursor), found
