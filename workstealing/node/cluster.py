"""What a node does: a request in, the body of its reply out; no I/O of its own.

The replies are the same whether the state is in memory or in Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, islice
from random import Random
from typing import Any

from workstealing.errors import UnknownWorker
from workstealing.node.cluster_state import ClusterState
from workstealing.node.messages import (
    MOST_WORKERS,
    AddWorker,
    CheckClusterState,
    CompleteJob,
    ErrorCode,
    Init,
    RemoveWorker,
    Request,
    RequestRefused,
    RunSimulation,
    StealJob,
    SubmitJob,
    TakeJob,
)
from workstealing.node.simulation import lengths, simulate

__all__ = ("DEFAULT_SEED", "Cluster")

DEFAULT_SEED = 1
"""With it, the first draw of two victims is the first one."""

_UNASKED_JOBS = 3
# Not allowed in a name of a client; what comes before it is not shown.
_MARK = "/"


class Cluster:
    """A cluster of workers and their jobs."""

    def __init__(self, state: ClusterState, seed: int = DEFAULT_SEED) -> None:
        self._state = state
        self._chance = Random(seed)  # noqa: S311 - repeatable, not secret
        self._length = lengths(seed)
        self._new_names = (f"job{number}" for number in count())
        self._turns = count()

    def answer(self, request: Request) -> dict[str, Any]:
        """Carry out a request; raise `RequestRefused` if that is not possible."""
        try:
            match request:
                case Init():
                    return self._init(request)
                case StealJob():
                    return self._steal(request)
                case RunSimulation():
                    return self._simulate(request)
                case SubmitJob():
                    return self._submit(request)
                case TakeJob():
                    return self._take(request)
                case CompleteJob():
                    return self._complete(request)
                case AddWorker():
                    return self._add(request)
                case RemoveWorker():
                    worker = request.worker
                    moved = self._state.remove(worker)
                    return _reply("remove_worker_ok", worker=worker, jobs_moved=moved)
                case CheckClusterState():
                    return self._check()
                case _:
                    raise RequestRefused(
                        ErrorCode.NOT_SUPPORTED, f"there is no request {request.type!r}"
                    )
        except UnknownWorker as error:
            raise RequestRefused(
                ErrorCode.KEY_DOES_NOT_EXIST, f"{error}: add_worker first"
            ) from error

    def _init(self, request: Init) -> dict[str, Any]:
        self._add_missing(request.workers)
        self._state.initialise()
        workers = _sorted(self._state.workers())
        number = request.jobs_to_distribute
        while number:
            shares: dict[str, list[str]] = {}
            for name in islice(self._new_names, number):
                shares.setdefault(self._next_worker(workers), []).append(name)
            # A name that a client has used for a job of its own is skipped.
            for worker, names in shares.items():
                number -= len(self._state.push(worker, names))
        return _reply("init_ok")

    def _steal(self, request: StealJob) -> dict[str, Any]:
        thief, busy = request.thief_worker, list(dict.fromkeys(request.busy_workers))
        if not self._state.is_initialised():
            self._assume_busy(thief, busy)
        loads = self._state.loads([thief, *busy])
        victims = [name for name in busy if loads[name].waiting and name != thief]
        while victims:
            victim = victims.pop(int(self._chance.random() * len(victims)))
            stolen = self._state.steal(victim, thief)
            if stolen is not None:
                return _reply(
                    "job_stolen",
                    thief=thief,
                    victim=victim,
                    job_id=_shown(stolen.job),
                    victim_queue_size=stolen.left,
                )
        raise RequestRefused(
            ErrorCode.PRECONDITION_FAILED,
            "nothing to steal: none of the workers has a job waiting",
        )

    def _assume_busy(self, thief: str, busy: Sequence[str]) -> None:
        """Without an `init`, assume that the workers a client calls busy have jobs."""
        known = self._add_missing([*busy, thief])
        for worker in busy:
            if worker not in known and worker != thief:
                jobs = [f"{worker}{_MARK}job{n}" for n in range(_UNASKED_JOBS)]
                self._state.push(worker, jobs)

    def _check(self) -> dict[str, Any]:
        loads = self._state.loads(_sorted(self._state.workers()))
        workers = {
            worker: {
                "queue_size": load.waiting,
                "state": "busy" if load.waiting or load.in_flight else "idle",
            }
            for worker, load in loads.items()
        }
        is_idle = self._state.all_idle()
        return _reply("cluster_state_ok", workers=workers, all_idle=is_idle)

    def _simulate(self, request: RunSimulation) -> dict[str, Any]:
        duration_ms = request.duration_ms
        tallies = simulate(self._state, duration_ms, self._length, self._chance)
        idle_ms = {
            worker: round(duration_ms - tally.busy_ms, 3)
            for worker, tally in tallies.items()
        }
        return _reply(
            "simulation_ok",
            jobs_completed=sum(tally.completed for tally in tallies.values()),
            jobs_stolen=sum(tally.stolen for tally in tallies.values()),
            idle_ms=round(sum(idle_ms.values()), 3),
            workers={
                worker: {
                    "jobs_completed": tallies[worker].completed,
                    "jobs_stolen": tallies[worker].stolen,
                    "idle_ms": idle_ms[worker],
                }
                for worker in _sorted(tallies)
            },
        )

    def _submit(self, request: SubmitJob) -> dict[str, Any]:
        worker, job = request.worker, request.job_id
        if worker is None:
            workers = _sorted(self._state.workers())
            worker = self._next_worker(workers) if workers else None
        if job is None:
            # A name that a client has used for a job of its own is skipped.
            job = next(name for name in self._new_names if self._pushed(worker, name))
        elif not self._pushed(worker, job):
            raise RequestRefused(
                ErrorCode.KEY_ALREADY_EXISTS,
                f"job {job!r} exists already: wait until it is done, or rename it",
            )
        return _reply("submit_job_ok", job_id=job, worker=worker)

    def _take(self, request: TakeJob) -> dict[str, Any]:
        worker = request.worker
        job = self._state.take(worker)
        if job is None:
            raise RequestRefused(
                ErrorCode.PRECONDITION_FAILED,
                f"{worker} has no job waiting: send steal_job",
            )
        left = self._state.loads([worker])[worker].waiting
        return _reply("take_job_ok", worker=worker, job_id=_shown(job), queue_size=left)

    def _complete(self, request: CompleteJob) -> dict[str, Any]:
        worker, name = request.worker, request.job_id
        for job in self._state.held(worker):
            if _shown(job) == name and self._state.done(worker, job):
                return _reply("complete_job_ok", worker=worker, job_id=name)
        raise RequestRefused(
            ErrorCode.KEY_DOES_NOT_EXIST,
            f"{worker} has no job {name!r} in flight: take_job or steal_job first",
        )

    def _add(self, request: AddWorker) -> dict[str, Any]:
        worker = request.worker
        if worker in self._add_missing([worker]):
            raise RequestRefused(
                ErrorCode.KEY_ALREADY_EXISTS, f"worker {worker!r} exists already"
            )
        return _reply("add_worker_ok", worker=worker)

    def _add_missing(self, workers: Sequence[str]) -> set[str]:
        """Add the workers that do not exist yet; return those that did."""
        known = set(self._state.workers())
        new = [name for name in dict.fromkeys(workers) if name not in known]
        if len(known) + len(new) > MOST_WORKERS:
            raise RequestRefused(
                ErrorCode.TEMPORARILY_UNAVAILABLE,
                f"a cluster has at most {MOST_WORKERS} workers: remove_worker first",
            )
        for worker in new:
            self._state.add(worker)
        return known

    def _next_worker(self, workers: Sequence[str]) -> str:
        return workers[next(self._turns) % len(workers)]

    def _pushed(self, worker: str | None, job: str) -> bool:
        return bool(self._state.push(worker, [job]))


def _reply(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def _shown(job: str) -> str:
    return job.rpartition(_MARK)[2]


def _sorted(workers: Iterable[str]) -> list[str]:
    """Sort w2 before w10, the same on every node."""
    return sorted(workers, key=lambda worker: (len(worker), worker))
