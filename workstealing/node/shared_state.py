"""The state of a cluster in Redis, shared by all nodes of one server.

It is a queue like any other, called `node`: its jobs are tasks, its deques are those of
workers, by the same scripts. So `workstealing queue tree --queue node` shows it. Its
workers are names, not processes: they have no lease to renew, and stay until they are
removed. Two scripts are the node's own, `place` and `snatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from workstealing.drivers.sync_driver import Driver
from workstealing.errors import UnknownWorker
from workstealing.node.cluster_state import StolenJob, WorkerLoad
from workstealing.queue.inspection_calls import counts
from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.listing_calls import (
    CHUNK,
    describe_workers,
    first_of,
    list_running,
    summarize,
)
from workstealing.queue.producer_calls import submit
from workstealing.queue.replies import text, texts
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, RedisCommand
from workstealing.queue.worker_calls import Exchanged, exchange, join, leave, release
from workstealing.tasks.attempt import Delivery, Report

__all__ = ("QUEUE", "SharedState", "place", "snatch")

QUEUE = "node"
"""The queue whose keys hold the state."""

# Any node may act for any worker, so all are one incarnation.
_INCARNATION = "node"
_ABOUT: dict[str, list[str]] = {"abilities": []}
_LEASE_MS = 10 * 365 * 86_400_000
_ENVELOPE = b'{"v":1,"name":"node.job","version":1,"payload":{}}'
_BATCH = 500

_script = queue_scripts(__package__)


class SharedState:
    """A `ClusterState` that many nodes share, and that outlives them."""

    def __init__(self, driver: Driver, queue: str = QUEUE) -> None:
        self._do = driver.call
        self._keys = QueueKeys(queue, "default")
        # No outcomes are kept: the name of a job may be used again, as in memory.
        self._settings = QueueSettings(retention_ms=0, lease_ms=_LEASE_MS)
        self._turns = count()

    def initialise(self) -> None:
        """Remember that there was an `init`."""
        self._do(RedisCommand(("HSET", self._keys.control, "initialised", 1), int))

    def is_initialised(self) -> bool:
        """Return whether there ever was an `init`."""
        parts = ("HEXISTS", self._keys.control, "initialised")
        return self._do(RedisCommand(parts, bool))

    def workers(self) -> list[str]:
        """Return the names of all workers."""
        names = self._do(_members(self._keys.workers))
        return sorted(names)

    def loaded(self) -> list[str]:
        """Return the workers that have jobs waiting."""
        names = self._do(_members(self._keys.loads))
        return sorted(names)

    def loads(self, workers: Sequence[str]) -> dict[str, WorkerLoad]:
        """Return how many jobs some workers have."""
        loads: dict[str, WorkerLoad] = {}
        for some in _batches(workers, CHUNK):
            for fellow in self._do(describe_workers(self._keys, some)):
                if not fellow.description:
                    raise _unknown(fellow.name)
                loads[fellow.name] = WorkerLoad(fellow.waiting, fellow.running)
        return loads

    def all_idle(self) -> bool:
        """Return whether no job is waiting or in flight anywhere."""
        return self._do(counts(self._keys)).unfinished == 0

    def add(self, worker: str) -> None:
        """Add a worker that does not exist yet."""
        self._do(join(self._keys, self._settings, worker, _INCARNATION, _ABOUT))
        self._spread()

    def remove(self, worker: str) -> int:
        """Remove a worker; its jobs, including those in flight, go to others."""
        self.loads([worker])
        moved, left = 0, 1
        while left:
            departure = self._do(
                leave(self._keys, worker, _INCARNATION, most=_BATCH, final=True)
            )
            moved, left = moved + departure.returned, departure.left
        self._spread()
        return moved

    def push(self, worker: str | None, jobs: Sequence[str]) -> list[str]:
        """Put jobs at the back of a deque; return those that are new."""
        fresh: list[str] = []
        for some in _batches(jobs, _BATCH):
            fresh += self._submit(some) if worker is None else self._place(worker, some)
        return fresh

    def take(self, worker: str) -> str | None:
        """Take the job at the front of a worker's own deque."""
        tasks = self._exchange(worker, want=1).tasks
        return tasks[0].id if tasks else None

    def steal(self, victim: str, thief: str) -> StolenJob | None:
        """Take the job at the back of a victim's deque; None if there is none."""
        while True:
            last = ("LINDEX", self._keys.deque(victim), -1)
            job = self._do(RedisCommand(last, lambda reply: text(reply or "")))
            left = self._do(snatch(self._keys, victim, thief, job))
            if left >= 0:
                return StolenJob(job, left)
            if left == -1:
                raise UnknownWorker(f"there is no worker {victim!r}, or no {thief!r}")
            if not job:
                return None

    def held(self, worker: str) -> list[str]:
        """Return the jobs that a worker has in flight."""
        number = self.loads([worker])[worker].in_flight
        held = (
            self._do(list_running(self._keys, [worker], most=number)) if number else ()
        )
        return [job for _, job, _ in held]

    def done(self, worker: str, job: str) -> bool:
        """Complete a job in flight; return False if the worker does not have it."""
        task = self._taken(worker, job)
        if task is None:
            return False
        report = Report(job, task.token, "done", b"")
        return not self._exchange(worker, reports=[report]).refused

    def hand_back(self, worker: str, job: str) -> bool:
        """Put a job in flight back to the front; False if it is not in flight."""
        task = self._taken(worker, job)
        return bool(task and self._do(release(self._keys, worker, [task])))

    def _taken(self, worker: str, job: str) -> Delivery | None:
        if job not in self.held(worker):
            return None
        (seen,) = self._do(summarize(self._keys, [job], most=1))
        return Delivery(job, seen.token, 1, b"") if seen.worker == worker else None

    def _exchange(
        self, worker: str, *, want: int = 0, reports: Sequence[Report] = ()
    ) -> Exchanged:
        keys, settings = self._keys, self._settings
        exchanged = self._do(
            exchange(
                keys,
                settings,
                worker,
                _INCARNATION,
                want=want,
                keep=0,
                reports=reports,
            )
        )
        if exchanged is None:
            raise _unknown(worker)
        return exchanged

    def _place(self, worker: str, jobs: Sequence[str]) -> tuple[str, ...]:
        placed = self._do(place(self._keys, worker, jobs, _ENVELOPE))
        if placed is None:
            raise _unknown(worker)
        return placed

    def _submit(self, jobs: Sequence[str]) -> list[str]:
        tasks = [(job, _ENVELOPE) for job in jobs]
        answer = self._do(submit(self._keys, self._settings, tasks, priority=1))
        return [job for n, job in enumerate(jobs) if n not in answer.known]

    def _spread(self) -> None:
        """Distribute the jobs of the inbox to all workers in turn."""
        while (workers := self.workers()) and (
            waiting := self._do(first_of(self._keys.inboxes[1], most=_BATCH))
        ):
            shares: dict[str, list[str]] = {}
            for job in waiting:
                worker = workers[next(self._turns) % len(workers)]
                shares.setdefault(worker, []).append(job)
            for worker, jobs in shares.items():
                # If it was removed meanwhile, they stay, and the next round finds them.
                self._do(place(self._keys, worker, jobs))


def place(
    keys: QueueKeys, worker: str, jobs: Sequence[str], envelope: bytes = b""
) -> Call[tuple[str, ...] | None]:
    """Put jobs at the back of a deque; return those placed, None without the worker.

    Without an envelope, only jobs that wait in the inbox are placed.
    """

    def parse(reply: Sequence[object]) -> tuple[str, ...] | None:
        verdict, *placed = texts(reply)
        return tuple(placed) if verdict == "ok" else None

    script = _script("place")
    return Call(
        script,
        script.keys(keys, deque=keys.deque(worker), inbox=keys.inboxes[1]),
        script.arguments(worker=worker, envelope=envelope, ids=jobs),
        parse,
    )


def snatch(keys: QueueKeys, victim: str, thief: str, job: str) -> Call[int]:
    """Take the last job of a victim; return how many are left, or an error code."""
    script = _script("snatch")
    return Call(
        script,
        script.keys(keys, deque=keys.deque(victim), running=keys.running(thief)),
        script.arguments(victim=victim, thief=thief, id=job),
        int,
    )


def _members(key: str) -> RedisCommand[tuple[str, ...]]:
    """Return all members of a sorted set."""
    return RedisCommand(("ZRANGE", key, 0, -1), texts)


def _unknown(worker: str) -> UnknownWorker:
    return UnknownWorker(f"there is no worker {worker!r}")


def _batches(words: Sequence[str], size: int) -> list[Sequence[str]]:
    return [words[start : start + size] for start in range(0, len(words), size)]
