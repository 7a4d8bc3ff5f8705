"""A FastAPI site in one file, whose cache hits look after its sessions and queue."""

from __future__ import annotations

import argparse
import os
from typing import Any

from fastapi import FastAPI, Request
from serving import loaded, served

from workstealing import (
    AsyncRecruiter,
    AsyncTaskQueue,
    AsyncWorkStealer,
    TaskQueue,
    Worker,
    connect,
    connect_async,
)
from workstealing.inspecting import Inspector
from workstealing.integrations import When
from workstealing.integrations.starlette import StarletteEnlistMiddleware, lifespan
from workstealing.jobs import AsyncVolatileHash

NAME = f"fastapi_site-{os.getpid()}"
redis, swept = connect_async(timeout=1.0), list[Any]()
sessions = AsyncVolatileHash(redis, NAME, on_expire=lambda *one: swept.append(one))
thumbnails = AsyncTaskQueue("thumbnails", redis, run=NAME)

# The defaults are 1 % and 50 ms; these let you see something, on slow machines too.
recruiter = AsyncRecruiter(share=0.1, deadline=0.5)
recruiter.install(sessions, "sessions", rate=0.2)
recruiter.install(AsyncWorkStealer(thumbnails, by="web"), "upkeep", every=0.5)

app = FastAPI(lifespan=lifespan(recruiter, redis))
app.add_middleware(StarletteEnlistMiddleware, recruiter=recruiter, when=When.asked())


def resize(number: int) -> str:
    """Pretend to make a thumbnail."""
    return f"{number}.png"


wanted = thumbnails.task(name="resize")(resize)


@app.get("/{number}")
async def page(number: int, visitor: str, request: Request) -> str:
    """Greet a visitor, whose session lasts a second, with a page from the cache."""
    await sessions.set(visitor, f"was on page {number}", ttl=1.0)
    cached = await redis.get(f"{NAME}:page:{number}")
    if isinstance(cached, bytes):
        request.state.enlist = True  # a hit was quick, so there is time to spare
        return cached.decode()
    text = f"page {number} and its picture"
    await redis.set(f"{NAME}:page:{number}", text, ex=2)
    await wanted.submit_in(0.5, number)  # upkeep puts it into the queue when it is due
    return text


def main() -> int:
    """Open the site for a while, and print what its cache hits did besides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    with served(app) as address:
        requests = loaded(address, parser.parse_args().seconds)
    with connect(timeout=1.0) as client:
        queue = TaskQueue("thumbnails", client, run=NAME)
        queue.task(name="resize")(resize)
        Worker(queue).run(until_empty=True)
        stats, stat = recruiter.stats(), Inspector(queue).stat()
        print(f"{requests:,} requests; those that hit the cache enlisted")
        for name, job in stats.jobs.items():
            print(f"{name}: {job.recruited} slices of use, {job.seconds:.3f} s in all")
        print(f"{len(swept):,} sessions swept away, {stat.totals.done} thumbnails made")
        client.unlink(*client.scan_iter(f"*{NAME}*", count=1000))
    return 0 if swept and stat.upkeep.slices.get("web", 0) else 1


if __name__ == "__main__":
    raise SystemExit(main())
