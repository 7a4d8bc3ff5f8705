"""Background work without a background.

A process with a spare moment enlists; by a lottery it is recruited for one small slice
of a job, or dismissed. Importing this package imports neither redis nor asyncio: a web
host that only enlists should not pay for what it does not use.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.recruiting.job import Duty, Job
from workstealing.recruiting.protection import Breaker, StoreGate
from workstealing.recruiting.recruiter import Recruiter
from workstealing.recruiting.slicing import time_left

if TYPE_CHECKING:
    from workstealing.client.calling import AsyncTaskClient, TaskClient
    from workstealing.client.channel import LoggingChannel
    from workstealing.client.queue import AsyncTaskQueue, TaskQueue
    from workstealing.drivers.connect import connect
    from workstealing.pool.pool import Pool
    from workstealing.pool.scaling import Autoscale
    from workstealing.recruiting.aio import AsyncRecruiter
    from workstealing.tasks.calling import ClientContext
    from workstealing.tasks.context import ExecutionContext, current_context
    from workstealing.tasks.contract import Contract
    from workstealing.tasks.permission import Policy
    from workstealing.tasks.registry import Registry
    from workstealing.tasks.retry import Retry
    from workstealing.tasks.signing import Keyring
    from workstealing.workers.upkeep import AsyncWorkStealer, WorkStealer
    from workstealing.workers.worker import Worker
    from workstealing.workers.worker_pool import WorkerPool

__all__ = (
    "AsyncRecruiter",
    "AsyncTaskClient",
    "AsyncTaskQueue",
    "AsyncWorkStealer",
    "Autoscale",
    "Breaker",
    "ClientContext",
    "Contract",
    "Duty",
    "ExecutionContext",
    "Job",
    "Keyring",
    "LoggingChannel",
    "Policy",
    "Pool",
    "Recruiter",
    "Registry",
    "Retry",
    "StoreGate",
    "TaskClient",
    "TaskQueue",
    "WorkStealer",
    "Worker",
    "WorkerPool",
    "connect",
    "current_context",
    "time_left",
)

_ON_DEMAND = {
    "AsyncRecruiter": "workstealing.recruiting.aio",
    "AsyncTaskClient": "workstealing.client.calling",
    "AsyncTaskQueue": "workstealing.client.queue",
    "AsyncWorkStealer": "workstealing.workers.upkeep",
    "Autoscale": "workstealing.pool.scaling",
    "ClientContext": "workstealing.tasks.calling",
    "Contract": "workstealing.tasks.contract",
    "ExecutionContext": "workstealing.tasks.context",
    "Keyring": "workstealing.tasks.signing",
    "LoggingChannel": "workstealing.client.channel",
    "Policy": "workstealing.tasks.permission",
    "Pool": "workstealing.pool.pool",
    "Registry": "workstealing.tasks.registry",
    "Retry": "workstealing.tasks.retry",
    "TaskClient": "workstealing.client.calling",
    "TaskQueue": "workstealing.client.queue",
    "WorkStealer": "workstealing.workers.upkeep",
    "Worker": "workstealing.workers.worker",
    "WorkerPool": "workstealing.workers.worker_pool",
    "connect": "workstealing.drivers.connect",
    "current_context": "workstealing.tasks.context",
}

# Without a handler of its own, Python would print our warnings to a host's stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ON_DEMAND[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
