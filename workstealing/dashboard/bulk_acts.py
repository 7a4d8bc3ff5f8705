"""Acts on many tasks: those that were ticked, or all that match a filter.

One request changes ten thousand tasks at most, so that none takes minutes. The page
then says that more match, and pressing the button again goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.bulk import BulkChanges
from workstealing.client.queue_internals import internals_of
from workstealing.inspecting import AsyncInspector, TaskFilter
from workstealing.inspecting.task_search import SEARCHED

__all__ = (
    "BULK_ACTIONS",
    "BulkAction",
    "Changed",
    "change_tasks",
    "count_matching",
    "matching_ids",
)

BulkAction = Literal["replay", "delete", "cancel"]
BULK_ACTIONS: dict[str, tuple[BulkAction, ...]] = {
    **dict.fromkeys(SEARCHED, ("cancel",)),
    "dead": ("replay", "delete"),
    "done": (),
}
"""What can be done to tasks in each state."""

_MOST = 10_000
_AT_ONCE = 16
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of the tasks."""

    matched: int
    changed: int
    asked: int = 0


async def matching_ids(
    inspector: AsyncInspector, wanted: TaskFilter, most: int = _MOST
) -> tuple[list[str], bool]:
    """Name tasks that match, and say whether there may be more."""
    ids: list[str] = []
    after = ""
    while True:
        page = await inspector.search(wanted, after, min(_PAGE, most - len(ids)))
        ids += (row.id for row in page.rows)
        after = page.after
        if not after or len(ids) >= most:
            return ids, bool(after)


async def count_matching(
    inspector: AsyncInspector, wanted: TaskFilter
) -> tuple[int, bool]:
    """Count tasks that match among the first, and say whether these are all."""
    matched = looked_at = 0
    after = ""
    while True:
        page = await inspector.search(wanted, after, _PAGE)
        if wanted.is_any:
            return page.total, True
        matched, looked_at = matched + len(page.rows), looked_at + page.looked_at
        after = page.after
        if not after or looked_at >= _MOST:
            return matched, not after


async def change_tasks(
    queue: AsyncTaskQueue, action: BulkAction, ids: Sequence[str]
) -> Changed:
    """Replay, delete or cancel tasks by their ids."""
    if action != "cancel":
        parts = internals_of(queue)
        flow = BulkChanges(parts).end_letters(ids, drop=action == "delete")
        result = await parts.driver.run(flow)
        return Changed(len(ids), result.changed)
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def cancel(task_id: str) -> str:
        async with at_once:
            return await queue.handle(task_id).cancel()

    verdicts = await asyncio.gather(*map(cancel, ids))
    return Changed(len(ids), verdicts.count("cancelled"), verdicts.count("asked"))
