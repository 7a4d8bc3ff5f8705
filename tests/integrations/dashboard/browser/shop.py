"""A queue in which there is something to see on every page, and its dashboard."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import uvicorn

from workstealing import (
    AsyncTaskQueue,
    Duty,
    Limit,
    Recruiter,
    TaskQueue,
    WorkerPool,
    chain,
    connect_async,
)
from workstealing.client.queue_internals import internals_of
from workstealing.dashboard import AccessGuard, DashboardData, create_app
from workstealing.inspecting import Inspector
from workstealing.jobs.ledger_entries import StatsDelta, add_entries
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.retry import RetryPolicy
from workstealing.testing import wait_until

TOKEN = "a-token-that-is-long-enough"
READ_ONLY = "another-one-that-only-looks"
LONG = "customer_lifetime_value_recalculation_for_the_quarterly_board_report" * 3
EVIL = "<script>alert(1)</script>"


class Shop:
    """A queue with tasks in every state, and another with 100,000 and no worker."""

    def __init__(self, url: str, name: str) -> None:
        self.queue = TaskQueue(name, url)
        self.idle = TaskQueue(f"{name}-idle", url)
        self.go_on = threading.Event()
        self.steps: list[ExecutionContext] = []
        queue = self.queue

        @queue.task(name="shop.resize")
        def resize(path: str, width: int = 120) -> str:
            return f"{path}@{width}"

        @queue.task(name="shop.transcode", retries=1)
        def transcode(context: ExecutionContext, video: str) -> str:
            logging.getLogger("shop").warning("audio of %s drifts", video)
            context.progress(910, 1100, f"pass 1 of 1, {video}")
            self.steps.append(context)
            self.go_on.wait()
            return "done"

        @queue.task(name=LONG[:200])
        def long_one(text: str = "") -> None:
            raise ValueError(f"{text} {EVIL} {'x' * 500}")

        @queue.task(name="shop.caption")
        def caption(text: str = "") -> None:
            raise OSError(28, "No space left on device", "/scratch/holiday.part")

        @queue.task(
            name="shop.flaky",
            retries=RetryPolicy(retries=5, initial_delay=600, max_delay=900),
        )
        def flaky() -> None:
            raise TimeoutError("the bank did not answer")

        @queue.task(name="shop.charge", limit=Limit(concurrency=1, name="bank"))
        def charge(customer: str) -> None:
            self.go_on.wait()

        self.resize, self.transcode, self.long_one = resize, transcode, long_one
        self.caption, self.flaky, self.charge = caption, flaky, charge

        @self.idle.task(name="shop.later")
        def later(number: int) -> None: ...

        self.later = later
        self.pool = WorkerPool(queue, workers=3, name="media")
        self.night = WorkerPool(queue, workers=1, name="night")

    def open(self) -> None:
        """Bring tasks into every state."""
        queue = self.queue
        self.later.submit_many([(n,) for n in range(100_000)])
        self.later.options(id="waits").submit(1)
        for n in range(60):
            self.long_one.options(id=f"{LONG[:100]}-{n}").submit("no")
        for n in range(7):
            self.caption.options(id=f"caption-{n}").submit("no")
        self.flaky.options(id="flaky-1").submit()
        self.resize.options(id="done-1").submit("cat.png")
        queue.schedule(self.resize, "x.png", every=3600, name="hourly")
        self.pool.start()
        self.night.start()
        is_ready = lambda: (  # noqa: E731
            queue.counts().dead == 67 and queue.counts().delayed == 1
        )
        wait_until(is_ready, 50, "the dead letters")
        self.transcode.options(id="video-5", log=True).submit("holiday-5.mp4")
        self.charge.submit_many([("ann",), ("bob",), ("cleo",)])
        chain(self.charge.s("dan"), self.caption.s()).submit()
        self.resize.options(id="in-a-minute", delay=60).submit("dog.png")
        wait_until(lambda: bool(self.steps), 50, "the task that runs")
        queue.pause("shop.resize")
        self.resize.submit("paused.png")
        self._steal()
        self._publish()

    def _steal(self) -> None:
        """Leave traces of thefts, as `steal.lua` does."""
        parts = internals_of(self.queue)
        client = parts.driver.client
        for thief, tasks in (("night.0", 16), ("night.0", 8), (f"{LONG[:60]}.0", 3)):
            entry = {"victim": "media.0", "thief": thief, "tasks": tasks}
            client.xadd(parts.keys.thefts, entry)

    def _publish(self) -> None:
        """Let a recruiter of this host, and one of another, publish."""
        recruiter = Recruiter(share=None)
        recruiter.install(lambda: None, "sweep", rate=0.01)
        recruiter.install(lambda: Duty.DISMISSED, f"nothing-{LONG[:80]}", rate=0.01)
        recruiter.install(_fail, "archive", every=30, target="archive:9000")
        client = internals_of(self.queue).driver.client
        recruiter.publish(client)
        for name in recruiter.stats().jobs:
            for _ in range(4):
                recruiter.run_now(name)
        recruiter.run_now("ledger")
        for host in ("vm", "web-7.example"):
            now = iter((0.0, 900.0)).__next__
            entries = StatsDelta(now).entries(recruiter.stats(), host)
            internals_of(self.queue).driver.call(add_entries(entries))

    def await_dead(self, number: int) -> None:
        """Wait until so many tasks were ever given up."""
        stats = lambda: self.queue.counts().stats["dead"]  # noqa: E731
        wait_until(lambda: stats() >= number, 50, "dead letters")

    def close(self) -> None:
        """End everything."""
        self.go_on.set()
        self.pool.stop()
        self.night.stop()
        self.queue.close()
        self.idle.close()

    def pages(self) -> dict[str, str]:
        """Return the address of every page by a short name."""
        where = {"queue": self.queue.name, "run": "default"}

        def at(path: str, **more: str) -> str:
            return f"{path}?{urlencode({**where, **more})}"

        states = (
            *("waiting", "assigned", "running", "delayed", "parked", "paused"),
            "steps",
        )
        worker = next(one.name for one in Inspector(self.queue).stat().workers)
        return {
            "home": "/",
            "queue": at("/queue"),
            "queue-8h": at("/queue", span="480"),
            **{state: at("/tasks", state=state) for state in (*states, "done", "dead")},
            "waiting-long": at("/tasks", queue=self.idle.name),
            "filtered": at("/tasks", state="dead", error="OSError"),
            "running-task": at("/task", id="video-5"),
            "done-task": at("/task", id="done-1"),
            "dead-task": at("/task", id=f"{LONG[:100]}-1"),
            "retried-task": at("/task", id="flaky-1"),
            "waiting-task": at("/task", queue=self.idle.name, id="waits"),
            "schedules": at("/schedules"),
            "workers": "/workers",
            "queue-workers": at("/workers"),
            "side-work": "/side-work",
            "worker": at("/worker", name=worker),
            "search": "/search?id=nobody",
            "acts": "/acts",
            "error": at("/task", id="nobody"),
        }


def _fail() -> None:
    raise ConnectionError(f"{EVIL} the archive is away")


@contextmanager
def serving(url: str, *names: str) -> Iterator[str]:
    """Serve a dashboard from a thread, and name its address."""
    client = connect_async(url, profile="tasks")
    data = DashboardData(client, [AsyncTaskQueue(name, client) for name in names])
    app = create_app(data, AccessGuard(TOKEN, read_only_token=READ_ONLY))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started, 20, "the dashboard")
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(20)
