"""A worker, or a web process with recruits only, whose clock is wrong.

`schedule_child.py NAME URL ROLE SECONDS`: what its tasks do is written to the list
`<queue>:ran`, the id of each task that was begun.
"""

from __future__ import annotations

import sys
import time

from redis import Redis

from workstealing import Recruiter, TaskQueue, Worker, WorkStealer, current_context

_NAME, _URL, _ROLE, _OFF = sys.argv[1:]
_SECONDS = float(_OFF)
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _SECONDS
time.time_ns = lambda: _time_ns() + round(_SECONDS * 1e9)

queue = TaskQueue(_NAME, _URL, lease=2.0)
sound = Redis.from_url(_URL)


@queue.every("* * * * * *", name="second", missed="all")
@queue.task(name="note")
def note() -> None:
    sound.rpush(f"{_NAME}:ran", current_context().id)


def serve() -> None:
    """Answer requests for ever, and enlist after each."""
    recruiter = Recruiter(share=None)
    recruiter.install(WorkStealer(queue), "tasks", rate=1.0)
    while True:
        time.sleep(0.02)
        recruiter.enlist()


if __name__ == "__main__":
    if _ROLE == "web":
        serve()
    Worker(queue).run()
