"""A Flask site in one file, whose cache hits look after its sessions and its queue."""

from __future__ import annotations

import argparse
import os
from typing import Any

from flask import Flask, g, request
from serving import loaded, served

from workstealing import Recruiter, TaskQueue, Worker, WorkStealer, connect
from workstealing.inspecting import Inspector
from workstealing.integrations import When
from workstealing.integrations.flask import FlaskEnlist
from workstealing.jobs import VolatileHash

NAME = f"flask_site-{os.getpid()}"
redis, swept = connect(timeout=1.0), list[Any]()
sessions = VolatileHash(redis, NAME, on_expire=lambda *one: swept.append(one))
thumbnails = TaskQueue("thumbnails", redis, run=NAME)

# The default share is 1 %; this one lets you see something.
recruiter = Recruiter(share=0.1)
recruiter.install(sessions, "sessions", rate=0.2)
recruiter.install(WorkStealer(thumbnails, by="web"), "upkeep", every=0.5)

app = Flask(__name__)
FlaskEnlist(app, recruiter=recruiter, when=When.asked())


@thumbnails.task(name="resize")
def resize(number: int) -> str:
    """Pretend to make a thumbnail."""
    return f"{number}.png"


@app.get("/<int:number>")
def page(number: int) -> str:
    """Greet a visitor, whose session lasts a second, with a page from the cache."""
    sessions.set(request.args["visitor"], f"was on page {number}", ttl=1.0)
    cached = redis.get(f"{NAME}:page:{number}")
    if isinstance(cached, bytes):
        g.enlist = True  # a hit was quick, so there is time to spare
        return cached.decode()
    text = f"page {number} and its picture"
    redis.set(f"{NAME}:page:{number}", text, ex=2)
    resize.submit_in(0.5, number)  # upkeep puts it into the queue when it is due
    return text


def main() -> int:
    """Open the site for a while, and print what its cache hits did besides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    with served(app) as address, redis:
        requests = loaded(address, parser.parse_args().seconds)
        Worker(thumbnails).run(until_empty=True)
        stats, stat = recruiter.stats(), Inspector(thumbnails).stat()
        print(f"{requests:,} requests; those that hit the cache enlisted")
        for name, job in stats.jobs.items():
            print(f"{name}: {job.recruited} slices of use, {job.seconds:.3f} s in all")
        upkeep = stat.upkeep.slices.get("web", 0)
        print(f"{len(swept):,} sessions swept away, {stat.totals.done} thumbnails made")
        redis.unlink(*redis.scan_iter(f"*{NAME}*", count=1000))
    return 0 if swept and upkeep else 1


if __name__ == "__main__":
    raise SystemExit(main())
