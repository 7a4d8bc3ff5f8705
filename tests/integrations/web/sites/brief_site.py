"""A site that runs its own brief tasks; one that is to be fatal waits for its end."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from diary import write

from workstealing import BriefTasks, Recruiter, TaskQueue, WorkStealer, connect
from workstealing.integrations.wsgi import WsgiEnlistMiddleware

# Side work waits 50 ms for a reply, which is too short on a busy machine.
queue = TaskQueue(os.environ["QUEUE"], connect(os.environ["REDIS"], timeout=5), lease=2)


@queue.task(name="visit", brief=True)
def visit(number: int, is_fatal: bool) -> int:
    """Stay until the process is killed, if it is fatal and begun for the first time."""
    diary = Path(os.environ["DIARY"]).read_text().split()
    is_first = not any(line.startswith(f"{number}:") for line in diary)
    write(f"{number}:{os.getpid()}")
    if is_fatal and is_first:
        time.sleep(60)
    return number


def page(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "4")])
    return [b"page"]


recruiter = Recruiter(share=None, breaker=None)
recruiter.install(BriefTasks(queue), "tasks", rate=0.7)
recruiter.install(WorkStealer(queue), "upkeep", rate=0.3)
app = WsgiEnlistMiddleware(page, recruiter)
