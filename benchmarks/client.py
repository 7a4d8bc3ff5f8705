"""The task client against the queue's own way, on the same worker in one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.measuring import Budget
from workstealing.client.task import Task
from workstealing.client.task_client import TaskClient
from workstealing.client.task_queue import TaskQueue
from workstealing.tasks.definition import define
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.submission import ClientContext
from workstealing.testing import Server
from workstealing.workers.worker import Worker

__all__ = ("make_queue", "measure")

_TRIPS = 400
_WARM_UP = 20
_SECRET = "measured, not kept"


def measure() -> list[Budget]:
    """Measure the round trip of a call by name."""
    with Server(tcp=True) as server:
        plain, signed = _round_trip(server.url, ""), _round_trip(server.url, _SECRET)
    return [
        Budget("call / submit + result, p50", plain, 1.2),
        Budget("the same, signed and with a policy / submit + result", signed, 1.2),
    ]


def make_queue(url: str, secret: str) -> TaskQueue:
    """Return a queue with one task that does nothing; with a secret it is guarded."""
    queue = TaskQueue("open", url)
    if secret:
        policy = AccessPolicy({"clerk": {"noop"}})
        queue = TaskQueue("guarded", url, secret=secret, policy=policy)
    queue.registry.add(define(_noop, "noop", permission="noop"))
    return queue


def _noop(number: int) -> int:
    return number


def _round_trip(url: str, secret: str) -> float:
    plain, asked = make_queue(url, ""), make_queue(url, secret)
    noop: Task[[int], int] = Task(plain, plain.registry.find("noop", 1))
    client, context = TaskClient(asked), ClientContext("ann", ("clerk",))

    def theirs() -> None:
        noop.submit(1).result(5)

    def ours() -> None:
        client.call(context, "noop", {"number": 1}, int, 5)

    arguments = [sys.executable, "-m", "benchmarks.client", url]
    workers = [subprocess.Popen([*arguments, word]) for word in {"", secret}]
    try:
        return _compared(ours, theirs)
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait()
        for queue in (plain, asked):
            queue.close()


def _compared(ours: Callable[[], None], theirs: Callable[[], None]) -> float:
    seconds: dict[Callable[[], None], list[float]] = {ours: [], theirs: []}
    for _ in range(_TRIPS):
        for side, taken in seconds.items():
            began_at = time.perf_counter()
            side()
            taken.append(time.perf_counter() - began_at)
    one, other = (statistics.median(taken[_WARM_UP:]) for taken in seconds.values())
    return one / other


if __name__ == "__main__":
    Worker(make_queue(*sys.argv[1:])).run()
