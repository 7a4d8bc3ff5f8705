"""The job of the site, by the environment."""

from __future__ import annotations

import os
from typing import Any

from bazaar.diary import write
from workstealing import Recruiter


def install_jobs(recruiter: Recruiter) -> None:
    kind = os.environ.get("JOB", "note")
    if kind != "none":
        recruiter.install(_job(kind), "job", rate=1.0)


def _job(kind: str) -> Any:
    if kind == "redis":
        from workstealing import connect
        from workstealing.jobs import VolatileHash

        # A busy machine must not look like a Redis that is down.
        return VolatileHash(connect(os.environ["REDIS"], timeout=20.0), "sessions")
    return {"note": note, "hang": hang, "fail": fail, "process": process}[kind]


def note() -> None:
    return None


def fail() -> None:
    raise RuntimeError("a job that fails")


def process() -> None:
    write(f"by-{os.getpid()}-of-{os.getppid()}")


def hang() -> None:
    write("begun")
    # Opening a pipe waits for whoever opens its other end.
    with open(os.environ["PIPE"]) as pipe:
        pipe.read()


async def coroutine() -> None:
    return None
