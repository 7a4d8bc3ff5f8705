"""A site of two processes that runs its own tasks: no worker, and one of them dies."""

from __future__ import annotations

import argparse
import os
import sys
import time

from serving import Site, serve

from workstealing import BriefTasks, Recruiter, TaskQueue, WorkStealer, connect
from workstealing.integrations.wsgi import WsgiEnlistMiddleware

RUN = os.environ.setdefault("NO_WORKERS_RUN", f"no_workers-{os.getpid()}")
redis = connect(timeout=1.0)
# What a process had in hand when it died comes back after a second, not after fifteen.
queue = TaskQueue("visits", redis, run=RUN, lease=1.0)


@queue.task(name="note-visit", brief=True)
def note_visit(page: str) -> None:
    """Count a visit: a task of a fraction of a millisecond."""
    redis.hincrby(f"{RUN}:visits", page)


def answer(page: str) -> str:
    """Answer a visitor, and leave a task behind, except for the front page."""
    if page != "/":
        note_visit.submit(page)
    return f"this is {page}\n"


def serve_pages() -> None:
    """Serve pages in this process; each enlists after its response."""
    # The default share is 1 %; this one lets you see something.
    recruiter = Recruiter(share=0.3)
    recruiter.install(BriefTasks(queue), "tasks", rate=0.2)
    recruiter.install(WorkStealer(queue, by="web"), "upkeep", every=0.2)
    serve(answer, lambda app: WsgiEnlistMiddleware(app, recruiter))


def main() -> int:
    """Send visitors to two processes, kill one of them, and count what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=600)
    visits = parser.parse_args().visits
    with redis, Site(__file__) as first, Site(__file__) as second:
        for _ in range(visits // 4):
            first.visit("/cats")
            second.visit("/dogs")
        first.kill()
        print("one of the two processes was killed with SIGKILL")
        for _ in range(visits // 2):
            second.visit("/birds")
        deadline = time.monotonic() + 30
        while queue.counts().unfinished and time.monotonic() < deadline:
            second.visit("/")
        counts = queue.counts()
        answered = first.noted + second.noted
        done, left = counts.stats.get("done", 0), counts.unfinished
        brief = counts.stats.get("brief", 0)
        print(f"{answered:,} pages left a task each")
        print(f"{done:,} tasks are done, {left} left; no worker ever ran")
        print(f"{brief:,} tasks were taken in spare moments")
        redis.unlink(*redis.scan_iter(f"*{RUN}*", count=1000))
    # The process that died may have submitted one more than it answered.
    return 0 if not left and done >= answered else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve_pages()
    raise SystemExit(main())
