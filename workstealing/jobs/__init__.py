"""Ready-made side work for Redis: a module per job, with a sync and an asyncio class.

Every job keeps its state in Redis, uses the server's time, runs bounded slices, and may
run in any number of processes at once.
"""

from __future__ import annotations

from workstealing.jobs.counter_flush import AsyncCounterFlush, CounterFlush
from workstealing.jobs.dead_members import AsyncDeadMembers, DeadMembers
from workstealing.jobs.fleet_side_work import (
    FleetHost,
    FleetJob,
    FleetSideWork,
    OpenTarget,
)
from workstealing.jobs.index_repair import AsyncIndexRepair, IndexRepair
from workstealing.jobs.keep_until import AsyncKeepUntil, KeepUntil
from workstealing.jobs.missing_ttl import AsyncMissingTTL, MissingTTL, TTLReport
from workstealing.jobs.namespace_budget import (
    AsyncNamespaceBudget,
    NamespaceBudget,
    Usage,
)
from workstealing.jobs.pending_reclaim import AsyncPendingReclaim, PendingReclaim
from workstealing.jobs.queue_tracker import AsyncQueueTracker, QueueTracker
from workstealing.jobs.refresh_ahead import AsyncRefreshAhead, RefreshAhead
from workstealing.jobs.side_work_ledger import AsyncSideWorkLedger, SideWorkLedger
from workstealing.jobs.side_work_verdicts import JobVerdict, Verdict
from workstealing.jobs.volatile_hash import AsyncVolatileHash, VolatileHash
from workstealing.jobs.window_trimmer import AsyncWindowTrimmer, WindowTrimmer
from workstealing.jobs.xfetch import XFetch
from workstealing.recruiting.observed_plan import Proposal

__all__ = (
    "AsyncCounterFlush",
    "AsyncDeadMembers",
    "AsyncIndexRepair",
    "AsyncKeepUntil",
    "AsyncMissingTTL",
    "AsyncNamespaceBudget",
    "AsyncPendingReclaim",
    "AsyncQueueTracker",
    "AsyncRefreshAhead",
    "AsyncSideWorkLedger",
    "AsyncVolatileHash",
    "AsyncWindowTrimmer",
    "CounterFlush",
    "DeadMembers",
    "FleetHost",
    "FleetJob",
    "FleetSideWork",
    "IndexRepair",
    "JobVerdict",
    "KeepUntil",
    "MissingTTL",
    "NamespaceBudget",
    "OpenTarget",
    "PendingReclaim",
    "Proposal",
    "QueueTracker",
    "RefreshAhead",
    "SideWorkLedger",
    "TTLReport",
    "Usage",
    "Verdict",
    "VolatileHash",
    "WindowTrimmer",
    "XFetch",
)
