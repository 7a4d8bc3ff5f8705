"""A site with an event loop that runs its own brief tasks, coroutines and functions."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from diary import write

from workstealing import (
    AsyncBriefTasks,
    AsyncRecruiter,
    AsyncTaskQueue,
    BriefTasks,
    WorkStealer,
)
from workstealing.integrations.asgi import AsgiEnlistMiddleware

queue = AsyncTaskQueue(os.environ["QUEUE"], os.environ["REDIS"], lease=2)


def note(number: int, is_fatal: bool) -> int:
    """Stay until the process is killed, if it is fatal and begun for the first time."""
    diary = Path(os.environ["DIARY"]).read_text().split()
    is_first = not any(line.startswith(f"{number}:") for line in diary)
    write(f"{number}:{os.getpid()}")
    if is_fatal and is_first:
        # Not awaited, or the slice would cancel it.
        time.sleep(60)
    return number


@queue.task(name="visit", brief=True)
async def visit(number: int, is_fatal: bool) -> int:
    return note(number, is_fatal)


@queue.task(name="count", brief=True)
def count(number: int, is_fatal: bool) -> int:
    return note(number, is_fatal)


async def page(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    headers = [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"page"})


recruiter = AsyncRecruiter(share=None, breaker=None)
recruiter.install(AsyncBriefTasks(queue), "coroutines", rate=0.4)
recruiter.install(BriefTasks(queue.sync()), "functions", rate=0.3)
recruiter.install(WorkStealer(queue.sync()), "upkeep", rate=0.3)
app = AsgiEnlistMiddleware(page, recruiter)
