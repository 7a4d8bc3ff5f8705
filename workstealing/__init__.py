"""A task queue on Redis, and housekeeping by processes with a spare moment.

A process with a spare moment enlists; by a lottery it is recruited for one small slice
of a job, or dismissed. The task queue builds on the same idea: its idle workers steal
from busy ones, and its upkeep is such a job.

The public names are those in `__all__` of this module, of `workstealing.dashboard`,
`.errors`, `.inspecting`, `.jobs`, `.node`, `.telemetry`, `.testing` and of the modules
of `.integrations`. Everything else may change in any release. Importing this package
imports neither redis nor asyncio: a web host that only enlists should not pay for what
it does not use.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.recruiting.job import Duty, Job
from workstealing.recruiting.protection import Breaker, StoreGate
from workstealing.recruiting.recruiter import Recruiter, Ticker
from workstealing.recruiting.slice import time_left

if TYPE_CHECKING:
    from workstealing.client.async_task_queue import AsyncTaskQueue
    from workstealing.client.bulk import BulkResult
    from workstealing.client.composed_handle import (
        AsyncChainHandle,
        AsyncGroupChainHandle,
        AsyncGroupHandle,
        ChainHandle,
        GroupChainHandle,
        GroupHandle,
    )
    from workstealing.client.composition import (
        AsyncChain,
        AsyncGroup,
        AsyncGroupChain,
        AsyncLink,
        AsyncStep,
        Chain,
        Group,
        GroupChain,
        Link,
        Step,
        chain,
        group,
    )
    from workstealing.client.event_watch import TaskEvent
    from workstealing.client.gathering import async_gather_results, gather_results
    from workstealing.client.handle import AsyncTaskHandle, TaskHandle
    from workstealing.client.schedule_handle import AsyncScheduleHandle, ScheduleHandle
    from workstealing.client.schedule_state import ScheduleState
    from workstealing.client.task import AsyncTask, Task
    from workstealing.client.task_client import AsyncTaskClient, TaskClient
    from workstealing.client.task_log import LoggingChannel, MemoryChannel
    from workstealing.client.task_queue import TaskQueue
    from workstealing.drivers.connect import connect, connect_async
    from workstealing.inspecting.inspector import AsyncInspector, Inspector
    from workstealing.jobs.fleet import AsyncFleet, Fleet
    from workstealing.pool.autoscale import Autoscale
    from workstealing.pool.pool import Pool
    from workstealing.pool.work import PoolStats, StopReport, Work
    from workstealing.pool.work_deques import WorkDeques
    from workstealing.queue.composition_calls import GroupProgress
    from workstealing.queue.inspection_calls import Counts
    from workstealing.queue.limit_calls import LimitState, LimitUse
    from workstealing.queue.pause_calls import Pauses
    from workstealing.recruiting.adapting import Adapt
    from workstealing.recruiting.async_recruiter import AsyncRecruiter
    from workstealing.recruiting.job import AsyncJob
    from workstealing.recruiting.plan import Forecast, Plan, plan
    from workstealing.recruiting.stats import JobStats, RecruiterStats
    from workstealing.tasks.context import ExecutionContext, Progress, current_context
    from workstealing.tasks.contract import Contract
    from workstealing.tasks.hooks import Middleware, NewResult, TaskCall
    from workstealing.tasks.limits import Limit
    from workstealing.tasks.member_result import MemberResult
    from workstealing.tasks.outcome import State, TaskState
    from workstealing.tasks.output_capture import LogRecord
    from workstealing.tasks.policy import PUBLIC, AccessPolicy
    from workstealing.tasks.registry import Registry
    from workstealing.tasks.resource import INJECTED, Resource
    from workstealing.tasks.retry import GiveUp, Restart, Retry, RetryPolicy, Snooze
    from workstealing.tasks.signing import Keyring
    from workstealing.tasks.submission import ClientContext
    from workstealing.tasks.unique import Unique
    from workstealing.workers.brief_tasks import AsyncBriefTasks, BriefTasks
    from workstealing.workers.upkeep import AsyncWorkStealer, WorkStealer
    from workstealing.workers.worker import Worker
    from workstealing.workers.worker_pool import WorkerPool
    from workstealing.workers.worker_stats import WorkerStats

__all__ = (
    "INJECTED",
    "PUBLIC",
    "AccessPolicy",
    "Adapt",
    "AsyncBriefTasks",
    "AsyncChain",
    "AsyncChainHandle",
    "AsyncFleet",
    "AsyncGroup",
    "AsyncGroupChain",
    "AsyncGroupChainHandle",
    "AsyncGroupHandle",
    "AsyncInspector",
    "AsyncJob",
    "AsyncLink",
    "AsyncRecruiter",
    "AsyncScheduleHandle",
    "AsyncStep",
    "AsyncTask",
    "AsyncTaskClient",
    "AsyncTaskHandle",
    "AsyncTaskQueue",
    "AsyncWorkStealer",
    "Autoscale",
    "Breaker",
    "BriefTasks",
    "BulkResult",
    "Chain",
    "ChainHandle",
    "ClientContext",
    "Contract",
    "Counts",
    "Duty",
    "ExecutionContext",
    "Fleet",
    "Forecast",
    "GiveUp",
    "Group",
    "GroupChain",
    "GroupChainHandle",
    "GroupHandle",
    "GroupProgress",
    "Inspector",
    "Job",
    "JobStats",
    "Keyring",
    "Limit",
    "LimitState",
    "LimitUse",
    "Link",
    "LogRecord",
    "LoggingChannel",
    "MemberResult",
    "MemoryChannel",
    "Middleware",
    "NewResult",
    "Pauses",
    "Plan",
    "Pool",
    "PoolStats",
    "Progress",
    "Recruiter",
    "RecruiterStats",
    "Registry",
    "Resource",
    "Restart",
    "Retry",
    "RetryPolicy",
    "ScheduleHandle",
    "ScheduleState",
    "Snooze",
    "State",
    "Step",
    "StopReport",
    "StoreGate",
    "Task",
    "TaskCall",
    "TaskClient",
    "TaskEvent",
    "TaskHandle",
    "TaskQueue",
    "TaskState",
    "Ticker",
    "Unique",
    "Work",
    "WorkDeques",
    "WorkStealer",
    "Worker",
    "WorkerPool",
    "WorkerStats",
    "async_gather_results",
    "chain",
    "connect",
    "connect_async",
    "current_context",
    "gather_results",
    "group",
    "plan",
    "time_left",
)

# Imported when they are first asked for.
_MODULES = {
    "workstealing.client.bulk": ("BulkResult",),
    "workstealing.client.gathering": ("async_gather_results", "gather_results"),
    "workstealing.client.event_watch": ("TaskEvent",),
    "workstealing.client.composed_handle": (
        "AsyncChainHandle",
        "AsyncGroupChainHandle",
        "AsyncGroupHandle",
        "ChainHandle",
        "GroupChainHandle",
        "GroupHandle",
    ),
    "workstealing.client.composition": (
        "AsyncChain",
        "AsyncGroup",
        "AsyncGroupChain",
        "AsyncLink",
        "AsyncStep",
        "Chain",
        "Group",
        "GroupChain",
        "Link",
        "Step",
        "chain",
        "group",
    ),
    "workstealing.client.handle": ("AsyncTaskHandle", "TaskHandle"),
    "workstealing.client.task_log": ("LoggingChannel", "MemoryChannel"),
    "workstealing.client.schedule_state": ("ScheduleState",),
    "workstealing.client.schedule_handle": ("AsyncScheduleHandle", "ScheduleHandle"),
    "workstealing.client.task": ("AsyncTask", "Task"),
    "workstealing.client.task_client": ("AsyncTaskClient", "TaskClient"),
    "workstealing.client.async_task_queue": ("AsyncTaskQueue",),
    "workstealing.client.task_queue": ("TaskQueue",),
    "workstealing.drivers.connect": ("connect", "connect_async"),
    "workstealing.inspecting.inspector": ("AsyncInspector", "Inspector"),
    "workstealing.pool.work_deques": ("WorkDeques",),
    "workstealing.pool.pool": ("Pool",),
    "workstealing.pool.autoscale": ("Autoscale",),
    "workstealing.pool.work": ("PoolStats", "StopReport", "Work"),
    "workstealing.queue.composition_calls": ("GroupProgress",),
    "workstealing.queue.inspection_calls": ("Counts",),
    "workstealing.queue.pause_calls": ("Pauses",),
    "workstealing.queue.limit_calls": ("LimitState", "LimitUse"),
    "workstealing.recruiting.adapting": ("Adapt",),
    "workstealing.recruiting.async_recruiter": ("AsyncRecruiter",),
    "workstealing.recruiting.job": ("AsyncJob",),
    "workstealing.recruiting.plan": ("Forecast", "Plan", "plan"),
    "workstealing.recruiting.stats": ("JobStats", "RecruiterStats"),
    "workstealing.tasks.submission": ("ClientContext",),
    "workstealing.tasks.context": ("ExecutionContext", "Progress", "current_context"),
    "workstealing.tasks.contract": ("Contract",),
    "workstealing.tasks.limits": ("Limit",),
    "workstealing.tasks.hooks": ("Middleware", "NewResult", "TaskCall"),
    "workstealing.tasks.member_result": ("MemberResult",),
    "workstealing.tasks.outcome": ("State", "TaskState"),
    "workstealing.tasks.output_capture": ("LogRecord",),
    "workstealing.tasks.policy": ("PUBLIC", "AccessPolicy"),
    "workstealing.tasks.registry": ("Registry",),
    "workstealing.tasks.resource": ("INJECTED", "Resource"),
    "workstealing.tasks.retry": ("GiveUp", "Restart", "Retry", "RetryPolicy", "Snooze"),
    "workstealing.tasks.signing": ("Keyring",),
    "workstealing.tasks.unique": ("Unique",),
    "workstealing.workers.worker_pool": ("WorkerPool",),
    "workstealing.workers.worker_stats": ("WorkerStats",),
    "workstealing.jobs.fleet": ("AsyncFleet", "Fleet"),
    "workstealing.workers.brief_tasks": ("AsyncBriefTasks", "BriefTasks"),
    "workstealing.workers.upkeep": ("AsyncWorkStealer", "WorkStealer"),
    "workstealing.workers.worker": ("Worker",),
}
_PUBLIC_MODULES = (
    *("dashboard", "errors", "inspecting", "integrations", "jobs"),
    *("node", "telemetry", "testing"),
)
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

# Without a handler of its own, Python would print our warnings to a host's stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Read when asked for: most hosts never ask.
        metadata = import_module("importlib.metadata")
        try:
            return metadata.version(__name__)
        except metadata.PackageNotFoundError:
            # It runs from a folder or an archive in which it was not installed.
            return "unknown"
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    # What this module imports for itself, such as `logging`, is not offered.
    offered = {*__all__, *_PUBLIC_MODULES}
    return sorted({*__all__, *(n for n in globals() if n in offered or n[:2] == "__")})
