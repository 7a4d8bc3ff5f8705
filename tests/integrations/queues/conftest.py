"""What stories about queues share: an application for each, and real workers."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from redis import Redis

import workstealing
from workstealing.testing import Server, wait_until
from workstealing.testing.plugin import missing

ROOT = Path(workstealing.__file__).parents[1]

# A task and a slice leave a mark each. With RATE 1 every enlisted moment is recruited,
# with hardly any only an idle worker does slices, every IDLE seconds.
BEGINNING = """
    import os
    import signal
    from redis import Redis
    from workstealing import AsyncRecruiter, Recruiter

    NAME, URL = os.environ["NAME"], os.environ["WORKSTEALING_URL"]
    SOCKET = URL.removeprefix("unix://").partition("?")[0]
    IDLE = float(os.environ["IDLE"]) or None
    redis = Redis.from_url(URL, decode_responses=True)

    def task_done():
        redis.rpush(f"{NAME}:marks", "task")

    def slice_done():
        redis.rpush(f"{NAME}:marks", "slice")
        if os.environ["THEN"] == "fail":
            raise RuntimeError("not today")
        if os.environ["THEN"] == "stop":
            os.kill(os.getpid(), signal.SIGTERM)

    def installed(recruiter):
        recruiter.install(slice_done, "slices", rate=float(os.environ["RATE"]))
        return recruiter
"""


@dataclass(frozen=True, slots=True)
class Queue:
    """An application of one library: its code, and the command of its worker."""

    code: str
    command: tuple[str, ...]
    module: str


QUEUES = {
    "arq": Queue(
        """
            import asyncio
            from arq import create_pool
            from arq.connections import RedisSettings
            from workstealing.integrations.arq import enlist_after_tasks

            async def task(context):
                task_done()

            class WorkerSettings:
                functions = [task]
                queue_name = NAME
                poll_delay = 0.05
                redis_settings = RedisSettings(unix_socket_path=SOCKET)

            recruiter = installed(AsyncRecruiter(share=None))
            enlist_after_tasks(WorkerSettings, recruiter, idle_every=IDLE)

            async def submitting():
                pool = await create_pool(WorkerSettings.redis_settings)
                await pool.enqueue_job("task", _queue_name=NAME)
                await pool.aclose()

            def submit():
                asyncio.run(submitting())
        """,
        ("-m", "arq", "app.WorkerSettings"),
        "arq",
    ),
    "celery": Queue(
        """
            from celery import Celery
            from workstealing.integrations.celery import enlist_after_tasks

            app = Celery("app", broker=f"redis+socket://{SOCKET}")
            app.conf.task_default_queue = NAME
            app.conf.worker_enable_remote_control = False
            app.conf.worker_hijack_root_logger = False
            enlist_after_tasks(app, installed(Recruiter(share=None)), idle_every=IDLE)

            @app.task
            def task():
                task_done()

            def submit():
                task.delay()
        """,
        (
            *("-m", "celery", "-A", "app", "worker", "--concurrency", "1"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        "celery",
    ),
    "dramatiq": Queue(
        """
            import dramatiq
            from dramatiq.brokers.redis import RedisBroker
            from workstealing.integrations.dramatiq import DramatiqEnlistMiddleware

            broker = RedisBroker(url=URL, namespace=NAME)
            recruiter = installed(Recruiter(share=None))
            broker.add_middleware(DramatiqEnlistMiddleware(recruiter, idle_every=IDLE))
            dramatiq.set_broker(broker)

            @dramatiq.actor
            def task():
                task_done()

            def submit():
                task.send()
        """,
        ("-m", "dramatiq", "app", "--processes", "1", "--threads", "2"),
        "dramatiq",
    ),
    "rq": Queue(
        """
            import math
            import rq
            from workstealing.integrations.rq import RqEnlistMixin

            class Worker(RqEnlistMixin, rq.Worker):
                recruiter = installed(Recruiter(share=None))
                idle_every = math.ceil(IDLE or 1000)

            connection = Redis.from_url(URL)

            def submit():
                rq.Queue(NAME, connection=connection).enqueue("app.task_done")

            def main():
                Worker([NAME], connection=connection).work()
        """,
        ("-c", "import app; app.main()"),
        "rq",
    ),
    "saq": Queue(
        """
            import asyncio
            from redis.asyncio import Redis as AsyncRedis
            from saq.queue.redis import RedisQueue
            from workstealing.integrations.saq import enlist_after_tasks

            queue = RedisQueue(AsyncRedis.from_url(URL), name=NAME)

            async def task(context):
                task_done()

            recruiter = installed(AsyncRecruiter(share=None))
            settings = {"queue": queue, "functions": [task], "concurrency": 2}
            enlist_after_tasks(settings, recruiter, idle_every=IDLE)

            async def submitting():
                await queue.enqueue("task")
                await queue.disconnect()

            def submit():
                asyncio.run(submitting())
        """,
        ("-m", "saq", "app.settings"),
        "saq",
    ),
}


class Site:
    """An application, its worker, and the marks that its work leaves."""

    def __init__(self, queue: Queue, folder: Path, server: Server, name: str) -> None:
        self._queue, self._folder, self._name = queue, folder, name
        self._redis = Redis.from_url(server.url, decode_responses=True)
        self._workers: list[subprocess.Popen[str]] = []
        self._environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
            "WORKSTEALING_URL": server.url,
            "NAME": name,
            "RATE": "1e-9",
            "IDLE": "0",
            "THEN": "",
        }
        code = dedent(BEGINNING) + dedent(queue.code)
        (folder / "app.py").write_text(code, encoding="utf-8")

    def start(
        self, *, rate: float = 1e-9, idle: float = 0.0, then: str = ""
    ) -> subprocess.Popen[str]:
        """Start a worker; *then* says what a slice does when it has left its mark."""
        settings = {"RATE": str(rate), "IDLE": str(idle), "THEN": then}
        environment = {**self._environment, **settings}
        with (self._folder / "output").open("w") as output:
            worker = subprocess.Popen(
                [sys.executable, *self._queue.command],
                cwd=self._folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self._workers.append(worker)
        return worker

    def submit(self) -> None:
        """Give the worker a task."""
        subprocess.run(
            [sys.executable, "-c", "import app; app.submit()"],
            cwd=self._folder,
            env=self._environment,
            check=True,
            timeout=30,
        )

    @property
    def marks(self) -> list[str]:
        """What tasks and slices have left, in their order."""
        return list(self._redis.lrange(f"{self._name}:marks", 0, -1))

    @property
    def output(self) -> str:
        """What the worker has written so far."""
        return (self._folder / "output").read_text(encoding="utf-8")

    def wait_for(self, condition: Callable[[list[str]], bool]) -> None:
        """Wait until the marks are as they should be."""
        try:
            wait_until(lambda: condition(self.marks), 30.0, "marks")
        except Exception as error:
            raise AssertionError(f"{self.marks}\n{self.output}") from error

    def end(self, worker: subprocess.Popen[str]) -> int:
        """Ask a worker to stop; return its exit code."""
        worker.send_signal(signal.SIGTERM)
        return worker.wait(30)

    def close(self) -> None:
        """End what still runs."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.terminate()
                try:
                    worker.wait(15)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()
        self._redis.close()


@pytest.fixture
def site(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    redis_server: Server,
    key_prefix: str,
) -> Iterator[Site]:
    """The application of the library that the test names."""
    queue = QUEUES[request.param]
    try:
        importlib.import_module(queue.module)
    except ImportError as error:
        if queue.module == "arq":
            # It asks for redis<6, so it is not among what the tests install.
            pytest.skip(
                f"pip install --no-deps arq, to test it beside redis 6: {error}"
            )
        missing(f"{queue.module} is not installed: {error}")
    site = Site(queue, tmp_path, redis_server, key_prefix)
    yield site
    site.close()
