"""The tasks of the demo; run as a module, it is one of the demo's workers."""

from __future__ import annotations

import os
import signal
import sys
import time
from threading import Thread

from workstealing.client.queue_internals import internals_of
from workstealing.client.task import Task
from workstealing.client.task_queue import TaskQueue
from workstealing.workers.worker import Worker

__all__ = ("POOL", "main", "make_queue")

POOL = "demo"


def make_queue(url: str, run: str) -> tuple[TaskQueue, Task[[float], float]]:
    """Return the queue of one demo, with a short lease so that rescue comes soon."""
    queue = TaskQueue("demo", url, run=run, lease=3.0)

    @queue.task(name="render")
    def render(seconds: float) -> float:
        """Take some time, like rendering a page."""
        # Shows how many tasks were started twice; the queue does not count that.
        parts = internals_of(queue)
        parts.driver.client.incr(f"{parts.keys.prefix}demo:started")
        time.sleep(seconds)
        return seconds

    return queue, render


def main() -> None:
    """Run tasks until SIGTERM, or until the demo has ended."""
    url, run, index = sys.argv[1:]
    queue, _ = make_queue(url, run)
    worker = Worker(queue, pool=POOL, index=int(index))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    # A Ctrl-C at the terminal reaches all processes; the demo itself stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_stop_with_parent, args=(worker, os.getppid()), daemon=True).start()
    worker.run()


def _stop_with_parent(worker: Worker, parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    worker.stop()


if __name__ == "__main__":
    main()
