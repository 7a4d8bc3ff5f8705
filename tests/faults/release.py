"""A worker of an old or a new release, in a process of its own.

The old one knows version 1 of two tasks, the new one version 2: of `scale` it takes
version 1 too, of `draw` it does not. It limits `call`, of which the old one knows no
limit. Besides, there are tasks that say what happens to them while their workers die.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from functools import cached_property
from typing import Any

from redis import Redis

from workstealing import Limit, TaskQueue, Worker
from workstealing.client.task import Task
from workstealing.tasks.context import ExecutionContext

__all__ = ("Release",)


class Release:
    """A queue as one release sees it."""

    def __init__(self, name: str, url: str, lease: float, release: int) -> None:
        self.name, self.url, self.lease, self.release = name, url, lease, release
        self.queue = queue = TaskQueue(name, url, lease=lease)
        if release == 1:
            self.scale: Task[Any, Any] = queue.task(name="scale")(scale_1)
            self.draw: Task[Any, Any] = queue.task(name="draw")(draw_1)
        else:
            upgrades = {1: upgrade_scale}
            as_new = queue.task(name="scale", version=2, accepts=upgrades)
            self.scale = as_new(scale_2)
            self.draw = queue.task(name="draw", version=2)(draw_2)

        def pay(number: int, is_fatal: bool) -> int:
            self.notes.rpush(self.key("paid"), number)
            if is_fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            while not self.notes.exists(self.key("go")):
                time.sleep(0.01)
            return number

        def chatter(lines: int, dies_at: int, ctx: ExecutionContext) -> int:
            """Tell line after line; die once, and go on where it was."""
            start = ctx.checkpoint or 0
            for number in range(start, lines):
                print(f"line {number}")  # noqa: T201
                ctx.logger.info("logged %d", number)
                ctx.save(number + 1)
                if number + 1 == dies_at and not start:
                    os.kill(os.getpid(), signal.SIGKILL)
            return start

        def call(number: int, by: int) -> int:
            process = os.getpid()
            self.notes.rpush(self.key("calls"), f"begin {process} {by} {number}")
            time.sleep(0.02)
            self.notes.rpush(self.key("calls"), f"end {process} {by} {number}")
            return number

        limit = None if release == 1 else Limit(concurrency=2, name="calls")
        self.call: Task[Any, Any] = queue.task(name="call", limit=limit)(call)
        self.pay: Task[Any, Any] = queue.task(name="pay", idempotent=False)(pay)
        self.chatter: Task[Any, Any] = queue.task(name="chatter")(chatter)

    @cached_property
    def notes(self) -> Redis:
        return Redis.from_url(self.url, socket_timeout=30)

    def key(self, word: str) -> str:
        return f"{self.name}:{word}"

    def paid(self) -> list[int]:
        return [int(number) for number in self.notes.lrange(self.key("paid"), 0, -1)]

    def close(self) -> None:
        self.notes.close()
        self.queue.close()


def scale_1(number: int, factor: int) -> str:
    time.sleep(0.001)
    return f"release 1: {number} times {factor}"


def upgrade_scale(payload: dict[str, Any]) -> dict[str, Any]:
    return {"number": payload["number"], "ratio": [payload["factor"], 1]}


def scale_2(number: int, ratio: tuple[int, int]) -> str:
    time.sleep(0.001)
    return f"release 2: {number} times {ratio[0]}/{ratio[1]}"


def draw_1(number: int) -> str:
    return f"release 1: {number}"


def draw_2(number: int, colour: str) -> str:
    return f"release 2: {number} in {colour}"


def main() -> None:
    name, url, lease, release, pool = sys.argv[1:]
    worker = Worker(Release(name, url, float(lease), int(release)).queue, pool=pool)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    with suppress(KeyboardInterrupt):
        worker.run()


if __name__ == "__main__":
    main()
