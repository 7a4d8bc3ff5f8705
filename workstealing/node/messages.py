"""The requests that a node understands, each a type of its own, checked when read.

Fields that a request does not have are ignored, so that newer clients can talk to
older nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from workstealing.errors import InvalidName
from workstealing.node.refusing import Code, Refused
from workstealing.tasks.naming import checked_queue_name

__all__ = (
    "LONGEST_MS",
    "MOST_JOBS",
    "MOST_WORKERS",
    "AddWorker",
    "CheckClusterState",
    "CompleteJob",
    "Init",
    "RemoveWorker",
    "Request",
    "RunSimulation",
    "StealJob",
    "SubmitJob",
    "TakeJob",
    "understood",
)

MOST_WORKERS = 1_000
"""In a cluster."""
MOST_JOBS = 100_000
"""In one `init`."""
LONGEST_MS = 1e9
"""Of one simulation."""

_Workers = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_WORKERS)]
_Number = Annotated[int, Meta(ge=0, le=MOST_JOBS)]
_Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_MS)]


class Request(msgspec.Struct, frozen=True):
    """What is asked of a node; *type* is its name on the wire."""

    type: ClassVar[str]


class Init(Request, frozen=True):
    """Take workers on, and spread new jobs evenly among all."""

    type = "init"
    workers: _Workers
    jobs_to_distribute: _Number = 0


class StealJob(Request, frozen=True):
    """Steal the last job of a random one of some workers."""

    type = "steal_job"
    thief_worker: str
    busy_workers: _Workers


class CheckClusterState(Request, frozen=True):
    """Tell who has how much, and whether all are idle."""

    type = "check_cluster_state"


class RunSimulation(Request, frozen=True):
    """Let the workers work and steal for some simulated time."""

    type = "run_simulation"
    duration_ms: _Milliseconds


class SubmitJob(Request, frozen=True):
    """Put a job at the back of a worker's deque; of the next one's, unless named."""

    type = "submit_job"
    job_id: str | None = None
    worker: str | None = None


class TakeJob(Request, frozen=True):
    """Take the job at the front of a worker's own deque."""

    type = "take_job"
    worker: str


class CompleteJob(Request, frozen=True):
    """Say that a worker has finished a job that it took or stole."""

    type = "complete_job"
    worker: str
    job_id: str


class AddWorker(Request, frozen=True):
    """Take a worker on."""

    type = "add_worker"
    worker: str


class RemoveWorker(Request, frozen=True):
    """Let a worker go; all that it has goes to others."""

    type = "remove_worker"
    worker: str


def understood(body: Mapping[str, Any]) -> Request:
    """Return the request that a body makes; raise `Refused` if it makes none."""
    kind = body.get("type")
    if not isinstance(kind, str):
        raise Refused(Code.MALFORMED_REQUEST, "the body needs a `type`, a string")
    if kind not in _REQUESTS:
        raise Refused(
            Code.NOT_SUPPORTED,
            f"there is no {kind[:80]!r}: send {', '.join(_REQUESTS)}",
        )
    try:
        request = msgspec.convert(body, _REQUESTS[kind])
        for field in _NAMES.intersection(request.__struct_fields__):
            named = getattr(request, field)
            for name in (named,) if isinstance(named, str) else named or ():
                checked_queue_name(name, f"`{field}`")
    except (msgspec.ValidationError, InvalidName) as error:
        raise Refused(Code.MALFORMED_REQUEST, f"{kind}: {error}") from error
    return request


_REQUESTS: dict[str, type[Request]] = {
    kind.type: kind
    for kind in (
        Init,
        StealJob,
        CheckClusterState,
        RunSimulation,
        SubmitJob,
        TakeJob,
        CompleteJob,
        AddWorker,
        RemoveWorker,
    )
}
# Names become parts of Redis keys, with or without Redis: one rule for both.
_NAMES = {"busy_workers", "job_id", "thief_worker", "worker", "workers"}
