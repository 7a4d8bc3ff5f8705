"""The requests that a node understands, and the errors that it replies with.

Each request is a type of its own, checked when it is read. Unknown fields are ignored,
so that newer clients can talk to older nodes.

An error has a code for programs and a text for people. The codes are those of
Maelstrom. After code 0 the request may have been carried out; after all others it was
not.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from workstealing._checks import checked_queue_name
from workstealing.errors import InvalidName, WorkStealingError

__all__ = (
    "LONGEST_MS",
    "MOST_JOBS",
    "MOST_WORKERS",
    "AddWorker",
    "CheckClusterState",
    "CompleteJob",
    "ErrorCode",
    "Init",
    "RemoveWorker",
    "Request",
    "RequestRefused",
    "RunSimulation",
    "StealJob",
    "SubmitJob",
    "TakeJob",
    "read_request",
)

MOST_WORKERS = 1_000
"""The most workers of a cluster."""
MOST_JOBS = 100_000
"""The most jobs of one `init`."""
LONGEST_MS = 1e9
"""The longest simulation."""

_Workers = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_WORKERS)]
_Number = Annotated[int, Meta(ge=0, le=MOST_JOBS)]
_Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_MS)]


class Request(msgspec.Struct, frozen=True):
    """A request to a node; *type* is its name on the wire."""

    type: ClassVar[str]


class Init(Request, frozen=True):
    """Add workers, and distribute new jobs evenly among all."""

    type = "init"
    workers: _Workers
    jobs_to_distribute: _Number = 0


class StealJob(Request, frozen=True):
    """Steal the last job of a random busy worker."""

    type = "steal_job"
    thief_worker: str
    busy_workers: _Workers


class CheckClusterState(Request, frozen=True):
    """Return how many jobs each worker has, and whether all are idle."""

    type = "check_cluster_state"


class RunSimulation(Request, frozen=True):
    """Let the workers work and steal for some simulated time."""

    type = "run_simulation"
    duration_ms: _Milliseconds


class SubmitJob(Request, frozen=True):
    """Put a job at the back of a worker's deque; by default, of the next in turn."""

    type = "submit_job"
    job_id: str | None = None
    worker: str | None = None


class TakeJob(Request, frozen=True):
    """Take the job at the front of a worker's own deque."""

    type = "take_job"
    worker: str


class CompleteJob(Request, frozen=True):
    """Complete a job that a worker took or stole."""

    type = "complete_job"
    worker: str
    job_id: str


class AddWorker(Request, frozen=True):
    """Add a worker."""

    type = "add_worker"
    worker: str


class RemoveWorker(Request, frozen=True):
    """Remove a worker; all its jobs go to others."""

    type = "remove_worker"
    worker: str


class ErrorCode(IntEnum):
    """Why a request got an error as its reply."""

    TIMEOUT = 0
    """Redis did not answer: the request may have been carried out, or not."""
    NOT_SUPPORTED = 10
    """There is no such type of message."""
    TEMPORARILY_UNAVAILABLE = 11
    """Redis refuses, or the cluster is full: try again later."""
    MALFORMED_REQUEST = 12
    """It is not JSON, or a field is missing or invalid."""
    KEY_DOES_NOT_EXIST = 20
    """There is no such worker, or it does not have that job in flight."""
    KEY_ALREADY_EXISTS = 21
    """The worker or the job exists already."""
    PRECONDITION_FAILED = 22
    """There is nothing to steal, or to take."""


class RequestRefused(WorkStealingError):
    """A request that cannot be carried out."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def _text(self) -> str:
        return self.text


def read_request(body: Mapping[str, Any]) -> Request:
    """Return the request of a body; raise `RequestRefused` if it is not one."""
    kind = body.get("type")
    if not isinstance(kind, str):
        raise RequestRefused(
            ErrorCode.MALFORMED_REQUEST, "the body needs a `type` that is a string"
        )
    if kind not in _REQUESTS:
        raise RequestRefused(
            ErrorCode.NOT_SUPPORTED,
            f"there is no request {kind[:80]!r}: send {', '.join(_REQUESTS)}",
        )
    try:
        request = msgspec.convert(body, _REQUESTS[kind])
        for field in _NAMES.intersection(request.__struct_fields__):
            named = getattr(request, field)
            for name in (named,) if isinstance(named, str) else named or ():
                checked_queue_name(name, f"`{field}`")
    except (msgspec.ValidationError, InvalidName) as error:
        raise RequestRefused(ErrorCode.MALFORMED_REQUEST, f"{kind}: {error}") from error
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
# Names become parts of Redis keys; in memory the same rule holds.
_NAMES = {"busy_workers", "job_id", "thief_worker", "worker", "workers"}
