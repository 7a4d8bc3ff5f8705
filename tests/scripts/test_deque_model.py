"""One model of the deques, for those in memory and for those that Lua keeps in Redis.

Push at the back, take at the front, steal at the back, hand back to the front, come and
go: whatever the order, each implementation must do what the lists of the model do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from workstealing.drivers.sync_driver import Driver
from workstealing.errors import UnknownWorker
from workstealing.node.cluster_state import (
    ClusterState,
    MemoryState,
    StolenJob,
    WorkerLoad,
)
from workstealing.node.shared_state import SharedState
from workstealing.queue.worker_calls import steal

WORKERS = ("a", "b", "c.0", "d#1")


class Deques(ClusterState, Protocol):
    """What a model can compare itself with."""

    def contents(self, worker: str) -> list[str]:
        """Name all jobs of a deque, the front first."""
        ...

    def unclaimed(self) -> list[str]:
        """Name all jobs that wait for a worker to come."""
        ...

    def steal_as_workers_do(
        self, victim: str, thief: str, *, half: bool
    ) -> StolenJob | None:
        """Steal for a thief whose deque is empty, and take the first."""
        ...


class DequesInMemory(MemoryState):
    """`pool.work_deques.WorkDeques`."""

    def contents(self, worker: str) -> list[str]:
        return list(self._deques._deques[worker].items)

    def unclaimed(self) -> list[str]:
        return list(self._deques._unassigned.items)

    def steal_as_workers_do(
        self, victim: str, thief: str, *, half: bool
    ) -> StolenJob | None:
        loot = self._deques.steal_from(victim, thief, half=half)
        if loot is None:
            return None
        self._held[thief].append(loot.item)
        return StolenJob(loot.item, loot.left)


class DequesInRedis(SharedState):
    """The scripts of queues, on whatever server."""

    def __init__(self, queue: Any) -> None:
        super().__init__(Driver(queue.client))
        self._queue = queue
        self._keys = queue.keys

    def contents(self, worker: str) -> list[str]:
        return self._list(self._keys.deque(worker))

    def unclaimed(self) -> list[str]:
        return self._list(self._keys.inboxes[1])

    def steal_as_workers_do(
        self, victim: str, thief: str, *, half: bool
    ) -> StolenJob | None:
        most = 500 if half else 1
        if not self._do(steal(self._keys, victim, thief, most=most)):
            return None
        job = self.take(thief)
        assert job is not None
        return StolenJob(job, len(self.contents(victim)))

    def _list(self, key: str) -> list[str]:
        return [job.decode() for job in self._queue.client.lrange(key, 0, -1)]


workers = st.sampled_from(WORKERS)
numbers = st.integers(0, 59)


class DequeMachine(RuleBasedStateMachine):
    def __init__(self, make: Callable[[], Deques]) -> None:
        super().__init__()
        self.real = make()
        self.waiting: dict[str, list[str]] = {}
        self.flying: dict[str, list[str]] = {}
        self.unclaimed: list[str] = []
        self.done: list[str] = []
        self.number = 0

    @initialize(names=st.sampled_from([WORKERS[:2], WORKERS[:3], ()]))
    def open(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.come(name)
            self.push(name, 3)

    @rule(worker=workers)
    def come(self, worker: str) -> None:
        if worker not in self.waiting:
            self.real.add(worker)
            self.waiting[worker], self.unclaimed = self.unclaimed, []
            self.flying[worker] = []

    @rule(worker=workers, number=st.integers(1, 3))
    def push(self, worker: str, number: int) -> None:
        jobs = self.new(number)
        if worker not in self.waiting:
            with pytest.raises(UnknownWorker):
                self.real.push(worker, jobs)
            self.number -= number
            return
        assert self.real.push(worker, jobs) == jobs
        self.waiting[worker] += jobs

    @precondition(lambda self: not self.waiting)
    @rule(number=st.integers(1, 3))
    def push_for_nobody(self, number: int) -> None:
        jobs = self.new(number)
        assert self.real.push(None, jobs) == jobs
        self.unclaimed += jobs

    @precondition(lambda self: len(self.done) < self.number)
    @rule(worker=workers, number=numbers)
    def push_again(self, worker: str, number: int) -> None:
        there = [f"j{n}" for n in range(self.number) if f"j{n}" not in self.done]
        if worker in self.waiting or not self.waiting:
            to = worker if self.waiting else None
            assert self.real.push(to, [there[number % len(there)]]) == []

    @rule(worker=workers)
    def take(self, worker: str) -> None:
        if worker not in self.waiting:
            with pytest.raises(UnknownWorker):
                self.real.take(worker)
            return
        own = self.waiting[worker]
        job = own.pop(0) if own else None
        assert self.real.take(worker) == job
        if job is not None:
            self.flying[worker].append(job)

    @rule(victim=workers, thief=workers)
    def steal(self, victim: str, thief: str) -> None:
        if victim == thief:
            return
        if victim not in self.waiting or thief not in self.waiting:
            with pytest.raises(UnknownWorker):
                self.real.steal(victim, thief)
            return
        self.stolen(self.real.steal(victim, thief), victim, thief, 1)

    @precondition(lambda self: self.of_those_with_nothing_waiting())
    @rule(number=numbers, victim=workers, half=st.booleans())
    def steal_as_workers_do(self, number: int, victim: str, half: bool) -> None:
        thieves = self.of_those_with_nothing_waiting()
        thief = thieves[number % len(thieves)]
        if victim in self.waiting and victim != thief:
            most = (len(self.waiting[victim]) + 1) // 2 if half else 1
            loot = self.real.steal_as_workers_do(victim, thief, half=half)
            self.stolen(loot, victim, thief, most)

    def stolen(
        self, loot: StolenJob | None, victim: str, thief: str, number: int
    ) -> None:
        own = self.waiting[victim]
        if not own:
            assert loot is None
            return
        first, *others = own[-number:]
        del own[-number:]
        assert loot == StolenJob(first, len(own))
        self.flying[thief].append(first)
        self.waiting[thief] += others

    @precondition(lambda self: any(self.flying.values()))
    @rule(number=numbers)
    def finish(self, number: int) -> None:
        worker, job = self.flight(number)
        assert self.real.done(worker, job)
        assert not self.real.done(worker, job)
        self.done.append(job)

    @precondition(lambda self: any(self.flying.values()))
    @rule(number=numbers)
    def hand_back(self, number: int) -> None:
        worker, job = self.flight(number)
        assert self.real.hand_back(worker, job)
        assert not self.real.hand_back(worker, job)
        self.waiting[worker].insert(0, job)

    @rule(worker=workers, job=st.sampled_from(("j0", "j1", "nothing")))
    def finish_what_it_has_not(self, worker: str, job: str) -> None:
        if worker in self.waiting and job not in self.flying[worker]:
            assert not self.real.done(worker, job)
            assert not self.real.hand_back(worker, job)

    @rule(worker=workers)
    def go(self, worker: str) -> None:
        if worker not in self.waiting:
            with pytest.raises(UnknownWorker):
                self.real.remove(worker)
            return
        jobs = [*self.waiting.pop(worker), *self.flying.pop(worker)]
        assert self.real.remove(worker) == len(jobs)
        self.find(jobs)

    @invariant()
    def each_deque_holds_what_it_should_in_order(self) -> None:
        for worker, jobs in self.waiting.items():
            assert self.real.contents(worker) == jobs
        assert self.real.unclaimed() == self.unclaimed

    @invariant()
    def each_worker_holds_what_it_should(self) -> None:
        for worker, jobs in self.flying.items():
            assert sorted(self.real.held(worker)) == sorted(jobs)

    @invariant()
    def no_job_is_lost_and_none_is_there_twice(self) -> None:
        there = [job for jobs in self.waiting.values() for job in jobs]
        there += [job for jobs in self.flying.values() for job in jobs]
        there += [*self.unclaimed, *self.done]
        assert sorted(there) == sorted(f"j{n}" for n in range(self.number))

    @invariant()
    def what_is_told_is_what_is_there(self) -> None:
        assert sorted(self.real.workers()) == sorted(self.waiting)
        loaded = [worker for worker, jobs in self.waiting.items() if jobs]
        assert sorted(self.real.loaded()) == sorted(loaded)
        assert self.real.loads(list(self.waiting)) == {
            worker: WorkerLoad(len(jobs), len(self.flying[worker]))
            for worker, jobs in self.waiting.items()
        }
        assert self.real.all_idle() == (len(self.done) == self.number)

    def new(self, number: int) -> list[str]:
        self.number += number
        return [f"j{n}" for n in range(self.number - number, self.number)]

    def of_those_with_nothing_waiting(self) -> list[str]:
        return [worker for worker, jobs in self.waiting.items() if not jobs]

    def flight(self, number: int) -> tuple[str, str]:
        flights = [
            (worker, job) for worker, jobs in self.flying.items() for job in jobs
        ]
        worker, job = flights[number % len(flights)]
        self.flying[worker].remove(job)
        return worker, job

    def find(self, jobs: list[str]) -> None:
        """Learn whose turn it was; all go to the back, as evenly as can be."""
        if not self.waiting:
            assert sorted(self.real.unclaimed()) == sorted(jobs)
            self.unclaimed = self.real.unclaimed()
            return
        shares = []
        for worker, own in self.waiting.items():
            real = self.real.contents(worker)
            assert real[: len(own)] == own
            shares.append(real[len(own) :])
            own += shares[-1]
        assert sorted(job for share in shares for job in share) == sorted(jobs)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def check(make: Callable[[], Deques], examples: int) -> None:
    run_state_machine_as_test(
        lambda: DequeMachine(make),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(120)
def test_the_deques_in_memory_do_what_the_model_does() -> None:
    check(DequesInMemory, 150)


@pytest.mark.timeout(120)
def test_the_deques_in_redis_do_what_the_model_does(
    make_queue: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    is_fake = "fakeredis" in request.node.name
    check(lambda: DequesInRedis(make_queue()), 8 if is_fake else 50)
