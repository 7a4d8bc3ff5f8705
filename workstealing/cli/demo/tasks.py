"""The tasks of the demo, and its workers: `python -m workstealing.cli.demo.tasks`."""

from __future__ import annotations

import os
import signal
import sys
import time
from threading import Thread

from workstealing.client.queue import TaskQueue
from workstealing.client.task import Task
from workstealing.workers.worker import Worker

__all__ = ("POOL", "main", "make_queue")

POOL = "demo"


def make_queue(url: str, run: str) -> tuple[TaskQueue, Task[[float], float]]:
    """Return the queue of one showing; leases are short, to see a rescue soon."""
    queue = TaskQueue("demo", url, run=run, lease=3.0)

    @queue.task(name="render")
    def render(seconds: float) -> float:
        """Take some time, as pages do."""
        # How often a task was begun, against how often one was done.
        queue.driver.client.incr(f"{queue.keys.prefix}demo:begun")
        time.sleep(seconds)
        return seconds

    return queue, render


def main() -> None:
    """Work until asked to stop."""
    url, run, index = sys.argv[1:]
    queue, _ = make_queue(url, run)
    worker = Worker(queue, pool=POOL, index=int(index))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    # A Ctrl-C at the terminal goes to all; the demo itself ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_stop_with_parent, args=(worker, os.getppid()), daemon=True).start()
    worker.run()


def _stop_with_parent(worker: Worker, parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    worker.stop()


if __name__ == "__main__":
    main()
