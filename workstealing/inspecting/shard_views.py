"""Lists, pages and trees of a queue with several shards, made of those of each.

A page names its shard: the next one goes on there, and then with the next shard. So
what is found is in order within a shard, and each task is found once.
"""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.errors import ConfigurationError
from workstealing.inspecting.counting import SomeWorkers, read_stat
from workstealing.inspecting.listing import list_tasks
from workstealing.inspecting.merged_stat import merged_stat
from workstealing.inspecting.reachable_shards import read_reachable
from workstealing.inspecting.task_search import (
    LOOKED_AT,
    TaskFilter,
    TaskPage,
    count_state,
    search_tasks,
)
from workstealing.inspecting.tree import read_tree
from workstealing.inspecting.views import QueueStat, TaskRow, TreeNode
from workstealing.queue.inspection_calls import Counts, counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Flow, ask

__all__ = (
    "list_shards",
    "read_reachable_stats",
    "read_shard_trees",
    "read_stats",
    "search_shards",
)

_LATEST_FIRST = ("done", "dead")


def read_stats(
    queue: str,
    run: str,
    server: str,
    settings: QueueSettings,
    seen: Sequence[tuple[QueueKeys, Counts]],
    some: SomeWorkers | None = None,
) -> Flow[QueueStat]:
    """Read what else describes a queue than the counts of its shards."""
    found: dict[int, QueueStat] = {}
    for keys, known in seen:
        part = yield from read_stat(queue, run, server, keys, settings, known, some)
        found[keys.shard] = part
    return merged_stat(found, ())


def read_reachable_stats(
    queue: str,
    run: str,
    server: str,
    settings: QueueSettings,
    shards: Sequence[QueueKeys],
    some: SomeWorkers | None = None,
) -> Flow[QueueStat]:
    """Read what describes a queue, without the shards whose node is away."""

    def read(keys: QueueKeys) -> Flow[QueueStat]:
        known = yield from ask(counts(keys))
        return (yield from read_stat(queue, run, server, keys, settings, known, some))

    return merged_stat(*(yield from read_reachable(shards, read)))


def list_shards(
    shards: Sequence[QueueKeys], where: str, limit: int
) -> Flow[tuple[TaskRow, ...]]:
    """List a place of all shards: the earliest first; of what has ended, the latest."""
    found: list[TaskRow] = []
    for keys in shards:
        found += yield from list_tasks(keys, where, limit)
    if len(shards) > 1:
        found.sort(key=lambda one: one.at_ms, reverse=where in _LATEST_FIRST)
    return tuple(found[:limit])


def search_shards(
    seen: Sequence[tuple[QueueKeys, Counts]],
    wanted: TaskFilter,
    after: str,
    limit: int,
) -> Flow[TaskPage]:
    """Find tasks behind a place, which the page before has named."""
    if len(seen) == 1:
        return (yield from search_tasks(*seen[0], wanted, after, limit))
    shard, place = _read_after(after, len(seen))
    rows: list[TaskRow] = []
    looked_at = 0
    while shard < len(seen) and len(rows) < limit and looked_at < LOOKED_AT:
        left = limit - len(rows)
        page = yield from search_tasks(*seen[shard], wanted, place, left)
        rows += page.rows
        looked_at += page.looked_at
        place = page.after
        shard += not place
    total = sum(count_state(wanted.state, counts) for _, counts in seen)
    after = f"{shard}/{place}" if shard < len(seen) else ""
    return TaskPage(tuple(rows), total, looked_at, after)


def read_shard_trees(
    queue: str, run: str, shards: Sequence[QueueKeys], limit: int
) -> Flow[TreeNode]:
    """Return the tree of a queue, with a folder for each shard if there are several."""
    if len(shards) == 1:
        return (yield from read_tree(queue, run, shards[0], limit))
    folders: list[TreeNode] = []
    for keys in shards:
        tree = yield from read_tree(queue, run, keys, limit)
        (whole,) = tree.children
        note = whole.note.replace("the run", "a shard", 1)
        folders.append(TreeNode(f"shard-{keys.shard}", note, whole.children))
    return TreeNode(queue, "the queue", (TreeNode(run, "the run", tuple(folders)),))


def _read_after(after: str, shards: int) -> tuple[int, str]:
    shard, _, place = after.partition("/")
    if not after:
        return 0, ""
    if shard.isascii() and shard.isdigit() and len(shard) < 5 and int(shard) < shards:
        return int(shard), place
    raise ConfigurationError(
        "after must be what the page before has named, or empty for the first page"
    )
