"""A queue for screenshots: the same tasks, names and numbers each time."""

from __future__ import annotations

import logging
import math
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlencode

import uvicorn

from workstealing import (
    AsyncTaskQueue,
    Limit,
    TaskQueue,
    WorkerPool,
    connect_async,
    current_context,
)
from workstealing.client.queue_internals import internals_of
from workstealing.dashboard import AccessGuard, DashboardData, create_app
from workstealing.inspecting import Inspector
from workstealing.queue.minute_calls import BOUNDS_MS, NUMBERS
from workstealing.queue.worker_calls import exchange, join, record_minute, steal
from workstealing.tasks.retry import RetryPolicy
from workstealing.testing import wait_until

__all__ = ("TOKEN", "DemoShop", "serving")

TOKEN = "a-token-for-screenshots"  # noqa: S105 - of a server that lives for seconds
_NAME = "media-pipeline"
_MINUTES = 60
# Per task name: tasks in a minute, milliseconds, one failure in so many.
_USUAL = {
    "media.resize@1": (420, 24, 0),
    "media.transcode@2": (38, 5200, 90),
    "media.caption@1": (64, 310, 22),
    "mails.send@1": (130, 85, 400),
}
_SECONDS = 30
# However long the pictures take: what runs must run on all of them.
_LONGEST = 900.0


class DemoShop:
    """A queue with tasks in every state, an hour of history, and one without worker."""

    def __init__(self, url: str) -> None:
        self.queue = TaskQueue(_NAME, url)
        self._idle = TaskQueue("newsletter", url)
        self._go_on = threading.Event()
        self._begun: list[str] = []
        self._pool = WorkerPool(self.queue, workers=4, name="web1")

    def open(self) -> None:
        """Bring tasks into every state."""
        queue = self.queue
        logging.getLogger("media").setLevel(logging.INFO)

        @queue.task(name="media.transcode", version=2)
        def transcode(video: str, done: int) -> str:
            log = logging.getLogger("media")
            log.info("reading %s, 1100 frames", video)
            log.warning("audio of %s drifts by 40 ms", video)
            context = current_context()
            assert context is not None
            context.progress(done, 1100, f"pass 1 of 1, {video}")
            self._begun.append(video)
            self._go_on.wait(_LONGEST)
            return video

        @queue.task(name="media.caption")
        def caption(video: str) -> None:
            raise OSError(28, "No space left on device", f"/scratch/{video}.part")

        @queue.task(
            name="bank.charge",
            retries=RetryPolicy(retries=5, initial_delay=600, max_delay=900),
        )
        def charge(customer: str) -> None:
            raise TimeoutError(f"the bank of {customer} did not answer")

        @queue.task(name="mails.send", limit=Limit(concurrency=1, name="smtp"))
        def send(to: str) -> None:
            logging.getLogger("mails").info("to %s", to)
            self._go_on.wait(_LONGEST)

        @queue.task(name="media.resize")
        def resize(path: str, width: int = 120) -> str:
            return f"{path}@{width}"

        @self._idle.task(name="mails.letter")
        def letter(number: int) -> None: ...

        letter.submit_many([(n,) for n in range(2400)])
        self._remember_an_hour()
        caption.submit_many([(f"holiday-{n}",) for n in range(7)])
        charge.options(id="charge-31").submit("ann")
        queue.schedule(resize, "front.png", every=3600, name="front-page")
        self._pool.start()
        counts = queue.counts
        wait_until(lambda: counts().dead == 7, _SECONDS, "the dead letters")
        for name, done in (("holiday-5", 910), ("wedding", 480), ("trailer", 75)):
            transcode.options(id=name, log=True).submit(f"{name}.mp4", done)
        wait_until(lambda: len(self._begun) == 3, _SECONDS, "the tasks that run")
        send.submit_many([(f"{name}@example.org",) for name in ("ann", "bob", "cleo")])
        wait_until(lambda: counts().assigned == 4, _SECONDS, "the letter that is sent")
        resize.options(id="later-1", delay=3000).submit("dog.png")
        resize.submit_many([(f"{n}.png",) for n in range(36)])
        wait_until(self._is_logged, _SECONDS, "the logs")
        self._steal()

    def _steal(self) -> None:
        """Let two more workers, played by hand, share what waits."""
        parts = internals_of(self.queue)
        settings = replace(parts.settings, lease_ms=600_000)
        described = {"abilities": ["media.resize@1"], "host": "web", "pid": 4711}
        for name in ("web2.0", "web3.0"):
            parts.driver.call(join(parts.keys, settings, name, "1", described))
        taken = exchange(parts.keys, settings, "web2.0", "1", want=3, keep=18)
        parts.driver.call(taken)
        parts.driver.call(steal(parts.keys, "web2.0", "web3.0"))

    def _is_logged(self) -> bool:
        return Inspector(self.queue).log_tail("holiday-5").total >= 2

    def close(self) -> None:
        """End everything."""
        self._go_on.set()
        self._pool.stop()
        self.queue.close()
        self._idle.close()

    def pages(self) -> dict[str, str]:
        """Return the address of each page that is shown in the docs."""
        where = {"queue": _NAME, "run": "default"}

        def at(path: str, **more: str) -> str:
            return f"{path}?{urlencode({**where, **more})}"

        return {
            "home": "/",
            "queue": at("/queue"),
            "dead": at("/tasks", state="dead"),
            "task": at("/task", id="holiday-5"),
        }

    def _remember_an_hour(self) -> None:
        parts = internals_of(self.queue)
        chance = random.Random(2019)  # noqa: S311 - the same hour each time
        this, passed = divmod(time.time(), 60)
        for ago in range(_MINUTES):
            load = 0.75 + 0.25 * math.sin(ago / 9) + chance.uniform(-0.06, 0.06)
            load *= 1 if ago else passed / 60
            counts = {}
            for name, (tasks, usual_ms, one_in) in _USUAL.items():
                numbers = [0] * NUMBERS
                for _ in range(round(tasks * load)):
                    took = usual_ms * chance.lognormvariate(0, 0.5)
                    is_failed = bool(one_in) and chance.random() < 1 / one_in
                    numbers[is_failed] += 1
                    numbers[2] += round(took)
                    numbers[3 + sum(bound <= took for bound in BOUNDS_MS)] += 1
                counts[name] = numbers
            parts.driver.call(record_minute(parts.keys, int(this) - ago, counts))


@contextmanager
def serving(url: str) -> Iterator[str]:
    """Serve the dashboard from a thread, and name its address."""
    client = connect_async(url, profile="tasks")
    data = DashboardData(client, [AsyncTaskQueue(_NAME, client)])
    app = create_app(data, AccessGuard(TOKEN))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started, 20, "the dashboard")
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(20)
