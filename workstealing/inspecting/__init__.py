"""Reading queues without changing them.

`Inspector` and `AsyncInspector` are the only readers: the command line, the dashboard
and the gauges all go through them, so they agree with each other.
"""

from __future__ import annotations

from workstealing.inspecting.alarms import Alarm, alarms_of
from workstealing.inspecting.biography import Biography, FailedAttempt, LifeStretch
from workstealing.inspecting.counting import RateMeter, Rates
from workstealing.inspecting.due_times import DueTimes
from workstealing.inspecting.error_groups import ErrorGroup, ErrorGroups
from workstealing.inspecting.inspector import AsyncInspector, Inspector
from workstealing.inspecting.listing import PLACES
from workstealing.inspecting.queue_events import QueueEvents, Release, Steal
from workstealing.inspecting.task_history import HistoryStretch, QueueHistory, TaskStat
from workstealing.inspecting.task_log_tail import LogTail
from workstealing.inspecting.task_search import TaskFilter, TaskPage
from workstealing.inspecting.views import (
    Explanation,
    ParkedStat,
    PauseStat,
    QueuesFound,
    QueueStat,
    QueueTotals,
    ShardStat,
    TaskDetail,
    TaskRow,
    TreeNode,
    UpkeepStat,
    WorkerStat,
)

__all__ = (
    "PLACES",
    "Alarm",
    "AsyncInspector",
    "Biography",
    "DueTimes",
    "ErrorGroup",
    "ErrorGroups",
    "Explanation",
    "FailedAttempt",
    "HistoryStretch",
    "Inspector",
    "LifeStretch",
    "LogTail",
    "ParkedStat",
    "PauseStat",
    "QueueEvents",
    "QueueHistory",
    "QueueStat",
    "QueueTotals",
    "QueuesFound",
    "RateMeter",
    "Rates",
    "Release",
    "ShardStat",
    "Steal",
    "TaskDetail",
    "TaskFilter",
    "TaskPage",
    "TaskRow",
    "TaskStat",
    "TreeNode",
    "UpkeepStat",
    "WorkerStat",
    "alarms_of",
)
