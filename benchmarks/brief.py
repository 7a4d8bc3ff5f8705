"""What a site keeps of its throughput and latency while it runs its own brief tasks.

10,000 tasks wait, and there is no worker. One process serves the same page with and
without us, in short rounds of load that alternate, as in `benchmarks.web`, until all
tasks are done. Side work is done in few slices of up to 50 ms, so a single round has a
slice or has none: the rounds are compared a hundred at a time, and the median of these
comparisons is reported.

Time passes in rounds without us as well, and the site saves up its share of it for
those with us. So it is given half of the share that is measured.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from dataclasses import dataclass

from benchmarks.measuring import Budget
from benchmarks.web import GUNICORN, GUNICORN_THREADS, PATHS, UVICORN
from benchmarks.web_load import Load, Round, p99, served
from workstealing import TaskQueue
from workstealing.testing import Server

__all__ = ("measure",)

_TASKS = 10_000
_PAIRS = 100
_SHARE = 0.01
_LONGEST = 1200


def measure() -> list[Budget]:
    """Measure a Flask site under gunicorn, and an ASGI site under uvicorn."""
    return [
        *_drain("Flask, gunicorn sync", GUNICORN),
        *_drain("Flask, gunicorn gthread", GUNICORN_THREADS),
        *_drain("ASGI, uvicorn", UVICORN),
    ]


@dataclass(frozen=True, slots=True)
class _Block:
    kept: float
    slower: float


def _drain(host: str, command: tuple[str, ...]) -> list[Budget]:
    with Server() as redis:
        queue = TaskQueue("brief", redis.url)

        @queue.task(name="visit", brief=True)
        def visit(page: str) -> str:
            return page

        visit.submit_many([("/cats",)] * _TASKS)
        settings = {"SITE_REDIS": redis.url, "SITE_JOB": "brief"}
        with (
            served(command, **settings, SITE_SHARE=str(_SHARE / 2)) as port,
            closing(Load(port)) as load,
        ):
            for path in PATHS:
                load.round(path)
            began_at, before = time.monotonic(), _done(queue)
            blocks: list[_Block] = []
            while queue.counts().unfinished and time.monotonic() < began_at + _LONGEST:
                blocks.append(_block(load))
            seconds_with_us = (time.monotonic() - began_at) / 2
        done = _done(queue)
        queue.close()
    per_second = (done - before) / seconds_with_us
    # During the last one, the tasks ran out.
    blocks = blocks[:-1] or blocks
    kept = statistics.median(block.kept for block in blocks)
    slower = statistics.median(block.slower for block in blocks)
    return [
        Budget(f"{host}: throughput while draining", kept, 0.97, at_least=True),
        Budget(f"{host}: p99 while draining", slower, 1.1),
        Budget(f"{host}: tasks per second at {_SHARE:.0%}", per_second, 1, "/s", True),
        Budget(f"{host}: tasks done of {_TASKS:,}", done, _TASKS, "", True),
    ]


def _block(load: Load) -> _Block:
    rounds: tuple[list[Round], list[Round]] = [], []
    for number in range(_PAIRS):
        # Who is first may find the machine in another state than who is second.
        for side in (0, 1) if number % 2 else (1, 0):
            rounds[side].append(load.round(PATHS[side]))
    without, with_us = rounds
    took = [sum(each.took for each in side) for side in rounds]
    return _Block(took[0] / took[1], p99(with_us) / p99(without))


def _done(queue: TaskQueue) -> int:
    return queue.counts().stats.get("done", 0)
