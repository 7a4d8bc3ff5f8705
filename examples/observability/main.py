"""A metrics endpoint for side work and tasks, some load, and one scrape of it.

`python examples/observability/main.py` ends by itself in some seconds; with
`--seconds 3600 --port 9105` it lasts long enough for Prometheus and Grafana.
"""

from __future__ import annotations

import argparse
import random
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

from endpoint import Endpoint
from prometheus_client import CollectorRegistry

from workstealing import Recruiter, TaskQueue, WorkerPool, WorkStealer, connect
from workstealing.jobs import VolatileHash
from workstealing.telemetry import PrometheusObserver

KEY = "observability:sessions"
DASHBOARD = Path(__file__).with_name("grafana.json")
SHOWN = re.compile(
    r"^\w+(_calls_total|slices_total|task_ends_total|backlog|workers|.*(waiting|done))"
)

registry = CollectorRegistry()
observers = (PrometheusObserver(registry),)
# The default share is 1 % of the time; this one lets you see something.
recruiter = Recruiter(share=0.1, observers=observers)
queue = TaskQueue("observability", observers=observers)


@queue.task(retries=2)
def render(page: int) -> int:
    """Take a while; one in fifty fails, and is tried again."""
    time.sleep(random.uniform(0.001, 0.01))
    if random.random() < 0.02:
        raise RuntimeError("out of paper")
    return page


def main(seconds: float, port: int) -> int:
    """Serve metrics, generate some load, and scrape them once."""
    redis, ended = connect(timeout=1.0), list[Any]()
    sessions = VolatileHash(redis, KEY, on_expire=lambda *one: ended.append(one))
    recruiter.install(sessions, "session-gc", rate=0.05)
    recruiter.install(WorkStealer(queue, by="web"), "task-upkeep", every=0.5)
    endpoint = Endpoint(port, registry, queue)
    print(f"{endpoint.url} for {seconds:g} seconds …\n", flush=True)
    end = time.monotonic() + seconds
    with WorkerPool(queue, workers=2):
        while time.monotonic() < end:
            visitor = random.randrange(1000)
            sessions.set(str(visitor), "signed in", ttl=1)
            render.submit(visitor)
            recruiter.enlist()
            time.sleep(0.005)
        with urllib.request.urlopen(endpoint.url) as reply:  # noqa: S310 - our own
            scraped = reply.read().decode()
    endpoint.shutdown()
    endpoint.server_close()
    sessions.delete(*sessions.get_all())
    redis.close()
    print("\n".join(line for line in scraped.splitlines() if SHOWN.search(line)))
    print(f"\n{len(ended)} sessions were ended in passing")
    asked = set(re.findall(r"\bworkstealing_\w+", DASHBOARD.read_text("utf-8")))
    missing = {name for name in asked if name not in scraped}
    print(f"grafana.json asks for {len(asked)} metrics; missing: {missing or 'none'}")
    return 1 if missing or not asked else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    raise SystemExit(main(arguments.seconds, arguments.port))
