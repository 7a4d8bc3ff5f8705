"""The task queue against a raw redis-py loop on the same server, in one run.

The floor pops a payload, decodes it, calls a function and sets the result with an
expiry: no lease, no lock, no types, no recovery.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import truediv
from typing import Any

from prometheus_client import CollectorRegistry

from benchmarks.measuring import Budget, alternate, best
from workstealing.client.queue_internals import internals_of
from workstealing.client.task import Task
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import connect
from workstealing.drivers.sync_driver import Driver
from workstealing.queue import producer_calls, worker_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.attempt import Report
from workstealing.tasks.limits import Limit
from workstealing.telemetry import Observer, PrometheusObserver
from workstealing.testing import Server, wait_until
from workstealing.workers.worker import Worker

__all__ = ("measure",)

_ROUNDS = 5
_FLOOR_TASKS = 2_000
_TASKS = 20_000
_TRIPS = 400


def measure() -> list[Budget]:
    """Measure all that concerns the queue."""
    return [
        *_drain(),
        _observed(),
        *_submit(),
        *_replicas(),
        *_memory(),
        _round_trip(),
        *_scaling(),
        *_lines(),
    ]


def make_queue(
    url: str, name: str, **options: Any
) -> tuple[TaskQueue, Task[[int], int]]:
    """Return a queue with one task that does nothing."""
    queue = TaskQueue(name, url, **options)

    @queue.task(name="noop")
    def noop(number: int) -> int:
        return number

    return queue, noop


@contextmanager
def _served() -> Iterator[tuple[Server, TaskQueue, Task[[int], int]]]:
    with Server(tcp=True) as server:
        queue, noop = make_queue(server.url, "bench")
        try:
            yield server, queue, noop
        finally:
            queue.close()


def _drain() -> list[Budget]:
    with _served() as (_, queue, noop):
        client, worker = internals_of(queue).driver.client, Worker(queue)
        ratios, trips = [], 0.0
        for _ in range(_ROUNDS):
            client.lpush("floor", *(f'{{"number": {n}}}' for n in range(_FLOOR_TASKS)))
            began_at = time.perf_counter()
            for number in range(_FLOOR_TASKS):
                popped = client.brpop("floor", 1)
                payload = popped[1] if popped else b"{}"
                result = (lambda number: number)(**json.loads(payload))
                client.set(f"floor:{number}", json.dumps(result), ex=3600)
            floor = (time.perf_counter() - began_at) / _FLOOR_TASKS

            noop.submit_many([(number,) for number in range(_TASKS)])
            began_at = time.perf_counter()
            worker.run(until_empty=True)
            ours = (time.perf_counter() - began_at) / _TASKS
            trips = worker.stats.exchanges / _TASKS
            ratios.append(floor / ours)
    return [
        Budget(
            "drain no-op tasks / raw BRPOP + SET", _median(ratios), 12, at_least=True
        ),
        Budget("round trips per task, drained in bulk", trips, 0.05, ""),
    ]


def _observed() -> Budget:
    """Compare a drain with an observer to one without."""

    def drain(observers: Sequence[Observer]) -> float:
        queue, noop = make_queue(server.url, "bench", observers=observers)
        with queue:
            noop.submit_many([(number,) for number in range(_TASKS)])
            began_at = time.perf_counter()
            Worker(queue).run(until_empty=True)
            return time.perf_counter() - began_at

    with Server(tcp=True) as server:
        drain(())
        ratios = [
            drain(()) / drain((PrometheusObserver(CollectorRegistry()),))
            for _ in range(_ROUNDS)
        ]
    return Budget(
        "drain no-op tasks with Prometheus / without observers",
        _median(ratios),
        0.4,
        at_least=True,
    )


def _submit() -> list[Budget]:
    payload = (
        '{"v":1,"name":"noop","version":1,"at":1794800000000,"payload":{"number":1}}'
    )
    arguments = [(number,) for number in range(_TASKS)]
    with Server(tcp=True) as server, ExitStack() as queues:

        def side(name: str, **options: Any) -> Callable[[], object]:
            queue, noop = make_queue(server.url, name, **options)
            queues.enter_context(queue)
            return partial(noop.submit_many, arguments)

        client = queues.enter_context(connect(server.url, profile="tasks"))

        def floor() -> None:
            for _ in range(_TASKS // 100):
                with client.pipeline(transaction=False) as pipeline:
                    for _ in range(100):
                        pipeline.lpush("floor", payload)
                    pipeline.execute()

        sides = {
            "": side("plain"),
            ", max_length": side("bounded", max_length=10_000_000),
            ", signed": side("signed", secret="s" * 32),
        }
        seconds = alternate(_ROUNDS, {"floor": floor, **sides})
    return [
        Budget(
            f"submit_many{which} / pipelined LPUSH of 100",
            _median(map(truediv, seconds["floor"], seconds[which])),
            limit,
            at_least=True,
        )
        for which, limit in zip(sides, (1.5, 1.3, 0.8), strict=True)
    ]


def _replicas() -> list[Budget]:
    """Measure what it costs to have a replica confirm everything."""
    with Server(tcp=True) as server, Server(tcp=True) as replica:
        with connect(replica.url, profile="tasks") as client:
            client.replicaof("127.0.0.1", server.port)
        with connect(server.url, profile="tasks") as client:
            wait_until(lambda: client.wait(1, 100) == 1, 30, "the replica to follow")
        plain, noop = make_queue(server.url, "plain")
        safe, safe_noop = make_queue(server.url, "safe", replicas=1)
        seconds = alternate(
            _ROUNDS,
            {
                "submit": lambda: [noop.submit(n) for n in range(_TRIPS)],
                "safe submit": lambda: [safe_noop.submit(n) for n in range(_TRIPS)],
                "many": lambda: noop.submit_many([(n,) for n in range(_TASKS)]),
                "safe many": lambda: safe_noop.submit_many(
                    [(n,) for n in range(_TASKS)]
                ),
                "drain": lambda: Worker(plain).run(until_empty=True),
                "safe drain": lambda: Worker(safe).run(until_empty=True),
            },
        )
        plain.close()
        safe.close()
    return [
        Budget(
            f"replicas=1 / replicas=0: {what}",
            _median(seconds[f"safe {side}"]) / _median(seconds[side]),
            limit,
        )
        for side, what, limit in (
            ("submit", "submit one by one", 2.0),
            ("many", "submit_many", 1.7),
            ("drain", "drain no-op tasks", 1.3),
        )
    ]


def _memory() -> list[Budget]:
    with _served() as (_, queue, noop):
        client = internals_of(queue).driver.client

        def used() -> int:
            return int(client.info("memory")["used_memory"])

        # Scripts that the server keeps are no part of a task.
        noop.submit_many([(0,), (1,)])
        Worker(queue).run(until_empty=True)
        before = used()
        noop.submit_many([(number,) for number in range(_TASKS)])
        waiting = (used() - before) / _TASKS
        Worker(queue).run(until_empty=True)
        finished = (used() - before) / _TASKS
    return [
        Budget("Redis memory of a waiting task", waiting, 200, "B"),
        Budget("Redis memory of a finished task", finished, 200, "B"),
    ]


def _lines() -> list[Budget]:
    """Limits that do not bind, and fair keys: few of them and many."""
    sides: dict[str, tuple[dict[str, Any], int]] = {
        "plain": ({}, 1),
        "limit": ({"limit": Limit(concurrency=10**6)}, 1),
        "10 limits": ({"limit": Limit(concurrency=10**6, per="number")}, 10),
        "10,000 limits": ({"limit": Limit(concurrency=10**6, per="number")}, 10_000),
        "10 keys": ({"fair_key": "number"}, 10),
        "10,000 keys": ({"fair_key": "number"}, 10_000),
    }
    drained: dict[str, list[float]] = {name: [] for name in sides}
    whole: dict[str, list[float]] = {name: [] for name in sides}
    with _served() as (server, _, _):
        for _ in range(_ROUNDS):
            for name, (options, number_of_keys) in sides.items():
                queue = TaskQueue(name.replace(" ", "-"), server.url, retention=0)
                task = queue.task(name="noop", **options)(_noop)
                arguments = [(number % number_of_keys,) for number in range(_TASKS)]
                began_at = time.perf_counter()
                task.submit_many(arguments)
                submitted_at = time.perf_counter()
                Worker(queue).run(until_empty=True)
                ended_at = time.perf_counter()
                drained[name].append(ended_at - submitted_at)
                whole[name].append(ended_at - began_at)
                queue.close()

    def ratio(of: dict[str, list[float]], name: str, to: str) -> float:
        return best(of[name]) / best(of[to])

    return [
        Budget(
            "drain limited tasks / unlimited ones",
            ratio(drained, "plain", "limit"),
            0.5,
            at_least=True,
        ),
        Budget(
            "a task of 10,000 limit keys / of 10",
            ratio(whole, "10,000 limits", "10 limits"),
            1.3,
        ),
        Budget(
            "a task of 10,000 fair keys / of 10",
            ratio(whole, "10,000 keys", "10 keys"),
            1.3,
        ),
    ]


def _noop(number: int) -> int:
    return number


def _round_trip() -> Budget:
    with _served() as (server, queue, noop):
        client = internals_of(queue).driver.client
        with _child("echo", server.url), _child("work", server.url):
            ours, echo = [], []
            for _ in range(_TRIPS):
                began_at = time.perf_counter()
                client.lpush("ping", "1")
                client.brpop("pong", 5)
                echo.append(time.perf_counter() - began_at)
                began_at = time.perf_counter()
                noop.submit(1).result(5)
                ours.append(time.perf_counter() - began_at)
    ratio = _median(ours[20:]) / _median(echo[20:])
    return Budget("round trip of one task / LPUSH-BRPOP echo, p50", ratio, 2.5)


def _scaling() -> list[Budget]:
    settings = QueueSettings()
    few, many = QueueKeys("few", "r"), QueueKeys("many", "r")
    envelope = b'{"v":1,"name":"noop","version":1,"payload":{"number":1}}'
    with Server(tcp=True) as server:
        driver = Driver(connect(server.url, profile="tasks"))
        for keys, workers, tasks in ((few, 10, 1_000), (many, 10_000, 1_000_000)):
            for number in range(workers):
                driver.call(
                    worker_calls.join(
                        keys, settings, f"p.{number}", "i", {"abilities": []}
                    )
                )
            for start in range(0, tasks, 1000):
                batch = [(f"{start + n:016d}", envelope) for n in range(1000)]
                driver.call(producer_calls.submit(keys, settings, batch, priority=1))

        def take(keys: QueueKeys) -> None:
            """Take ten, give them back: the queue stays as long as it is."""
            taken = driver.call(
                worker_calls.exchange(keys, settings, "p.0", "i", want=10, keep=20)
            )
            assert taken is not None
            reports = [Report(t.id, t.token, "back") for t in taken.tasks]
            driver.call(
                worker_calls.exchange(
                    keys, settings, "p.0", "i", want=0, keep=0, reports=reports
                )
            )

        def theft(keys: QueueKeys) -> None:
            """Steal from the one that has something, and hand it back."""
            driver.call(
                worker_calls.exchange(keys, settings, "p.1", "i", want=1, keep=20)
            )
            assert driver.call(worker_calls.steal(keys, "p.1", "p.2")) > 0
            for thief in ("p.1", "p.2"):
                driver.call(worker_calls.leave(keys, thief, "i", final=True))
                driver.call(
                    worker_calls.join(keys, settings, thief, "i", {"abilities": []})
                )

        budgets = []
        for what, act in (("take", take), ("steal", theft)):
            small: list[float] = []
            large: list[float] = []
            for _ in range(300):
                for keys, seconds in ((few, small), (many, large)):
                    began_at = time.perf_counter()
                    act(keys)
                    seconds.append(time.perf_counter() - began_at)
            budgets.append(
                Budget(
                    f"{what}: 10,000 workers, 10⁶ tasks / 10 and 10³",
                    _median(large) / _median(small),
                    1.3,
                )
            )
        driver.client.close()
        return budgets


@contextmanager
def _child(role: str, url: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.queue", role, url])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _main() -> None:
    role, url = sys.argv[1:]
    if role == "work":
        Worker(make_queue(url, "bench")[0]).run()
    client = connect(url, profile="tasks")
    while True:
        if client.brpop("ping", 1):
            client.lpush("pong", "1")


if __name__ == "__main__":
    _main()
