"""A worker or web process of its own, to be killed, stopped and starved.

What its tasks do is written to Redis, by a connection of their own that no fault meets:
the list `<queue>:ran` has an entry for each time that a task was begun.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from redis import Redis

from workstealing import Limit, Recruiter, TaskQueue, Worker, WorkStealer
from workstealing.client.task import Task
from workstealing.tasks.context import ExecutionContext

__all__ = ("Story",)


@dataclass
class Story:
    """A queue, its tasks, and what they left behind."""

    name: str
    url: str
    sound_url: str
    """Where notes are taken, past all faults."""
    lease: float
    shards: int = 1

    def __post_init__(self) -> None:
        self.queue = queue = TaskQueue(
            self.name, self.url, lease=self.lease, shards=self.shards
        )

        def note(number: int) -> int:
            self.ran(number)
            return number

        def pause(number: int, seconds: float) -> int:
            self.ran(number)
            time.sleep(seconds)
            return number

        def hold(number: int, context: ExecutionContext) -> str:
            """Go on until the test says so, and tell what is seen meanwhile."""
            self.ran(number)
            while not self.sound.exists(self.key("go")):
                if context.lease_lost:
                    self.sound.rpush(self.key("lost"), context.worker)
                    return "late"
                time.sleep(0.01)
            return "done"

        def compute(number: int, seconds: float) -> int:
            """Do not let other threads run more than Python makes it."""
            self.ran(number)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                sum(range(1_000))
            return number

        def poison(number: int) -> None:
            self.ran(number)
            os.kill(os.getpid(), signal.SIGKILL)

        def limited(number: int, customer: str, seconds: float) -> int:
            """Tell when it begins and ends, and whose process it was."""
            self.ran(number)
            self.sound.rpush(self.key("events"), f"begin {os.getpid()} {customer}")
            time.sleep(seconds)
            self.sound.rpush(self.key("events"), f"end {os.getpid()} {customer}")
            return number

        limit = Limit(concurrency=2, per="customer", name="customer")
        self.limited: Task[Any, Any] = queue.task(name="limited", limit=limit)(limited)
        self.note: Task[Any, Any] = queue.task(name="note")(note)
        self.pause: Task[Any, Any] = queue.task(name="pause")(pause)
        self.hold: Task[Any, Any] = queue.task(name="hold")(hold)
        self.compute: Task[Any, Any] = queue.task(name="compute")(compute)
        self.poison: Task[Any, Any] = queue.task(name="poison")(poison)

    @cached_property
    def sound(self) -> Redis:
        return Redis.from_url(self.sound_url, socket_timeout=30)

    def key(self, word: str) -> str:
        return f"{self.name}:{word}"

    def ran(self, number: int) -> None:
        self.sound.rpush(self.key("ran"), number)

    def runs(self) -> list[int]:
        return [int(number) for number in self.sound.lrange(self.key("ran"), 0, -1)]

    def close(self) -> None:
        self.sound.close()
        self.queue.close()


def set_clock_off(seconds: float) -> None:
    """Let the clock of this process be wrong."""
    read, read_ns = time.time, time.time_ns
    time.time = lambda: read() + seconds
    time.time_ns = lambda: read_ns() + round(seconds * 1e9)


def serve(queue: TaskQueue) -> None:
    """Answer requests for ever, and enlist after each."""
    recruiter = Recruiter(share=None)
    recruiter.install(WorkStealer(queue), "tasks", rate=1.0)
    while True:
        time.sleep(0.02)
        recruiter.enlist()


def main() -> None:
    name, url, sound_url, lease, pool, batch, off, shards = sys.argv[1:]
    set_clock_off(float(off))
    story = Story(name, url, sound_url, float(lease), int(shards))
    if pool == "web":
        serve(story.queue)
    worker = Worker(story.queue, pool=pool, batch=int(batch))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
