"""Reading queues without changing them.

`Inspector` and `AsyncInspector` are the only readers: the command line, the dashboard
and the gauges all go through them, so they agree with each other.
"""

from __future__ import annotations

from workstealing.inspecting.counting import RateMeter, Rates
from workstealing.inspecting.inspector import AsyncInspector, Inspector
from workstealing.inspecting.listing import PLACES
from workstealing.inspecting.views import (
    Explanation,
    FailedAttempt,
    ParkedStat,
    PauseStat,
    QueuesFound,
    QueueStat,
    QueueTotals,
    TaskDetail,
    TaskRow,
    TreeNode,
    UpkeepStat,
    WorkerStat,
)

__all__ = (
    "PLACES",
    "AsyncInspector",
    "Explanation",
    "FailedAttempt",
    "Inspector",
    "ParkedStat",
    "PauseStat",
    "QueueStat",
    "QueueTotals",
    "QueuesFound",
    "RateMeter",
    "Rates",
    "TaskDetail",
    "TaskRow",
    "TreeNode",
    "UpkeepStat",
    "WorkerStat",
)
