"""What the sites share: a recruiter by the environment, and a diary of its slices."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from workstealing import AsyncRecruiter, Recruiter
from workstealing.integrations import When, request_took
from workstealing.jobs import AsyncVolatileHash, VolatileHash
from workstealing.telemetry.events import SliceEnded, SliceRefused

IS_OURS = os.environ.get("OURS") == "yes"
WHENS = {
    "always": When.always(),
    "fine": When.fine(),
    "quick": When.quick(1e-9),
    "asked": When.asked(),
}
# Long, for a busy machine: only a job that hangs should meet it.
DEADLINE = float(os.environ.get("DEADLINE", "10"))
WHEN = WHENS[os.environ.get("WHEN", "always")]


def write(line: str) -> None:
    descriptor = os.open(os.environ["DIARY"], os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


class Diary:
    def observe(self, event: Any) -> None:
        if isinstance(event, SliceEnded | SliceRefused):
            took = request_took()
            write(event.outcome if took is not None and took > 0.0 else "no-time")


def recruiter() -> Recruiter:
    made = Recruiter(share=None, deadline=DEADLINE, observers=[Diary()])
    made.install(_sync_job(), "job", rate=1.0)
    return made


def async_recruiter() -> AsyncRecruiter:
    made = AsyncRecruiter(share=None, deadline=DEADLINE, observers=[Diary()])
    made.install(_async_job(), "job", rate=1.0)
    return made


def _sync_job() -> Any:
    kind = os.environ.get("JOB", "note")
    if kind == "redis":
        return VolatileHash(os.environ["REDIS"], "sessions")
    return {"note": _note, "hang": _hang, "held": _hang, "fail": _fail}[kind]


def _async_job() -> Any:
    kind = os.environ.get("JOB", "note")
    if kind == "redis":
        return AsyncVolatileHash(os.environ["REDIS"], "sessions")
    # A plain function runs in a thread, in which it can wait for the pipe.
    kinds = {"note": _note, "hang": _hang_awaiting, "held": _hang, "fail": _fail}
    return kinds[kind]


def _note() -> None:
    return None


def _fail() -> None:
    raise RuntimeError("a job that fails")


def _hang() -> None:
    write("begun")
    # Opening a pipe waits for whoever opens its other end.
    with open(os.environ["PIPE"]) as pipe:
        pipe.read()


async def _hang_awaiting() -> None:
    write("begun")
    await asyncio.Event().wait()
