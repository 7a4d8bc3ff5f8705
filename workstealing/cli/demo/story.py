"""What happens in the demo, and when.

A web site serves cache hits that enlist, and thereby collects its garbage. Four workers
share tasks; one is killed, another joins late.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread

from workstealing.cli.demo.demo_tasks import POOL, make_queue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import connect
from workstealing.jobs import VolatileHash, WindowTrimmer
from workstealing.queue.inspection_calls import Counts
from workstealing.recruiting.recruiter import Recruiter
from workstealing.recruiting.stats import RecruiterStats
from workstealing.workers.upkeep import WorkStealer

__all__ = ("KILLED", "LATE", "LOG_LINES", "SHARE", "Scene", "Story")

KILLED = f"{POOL}.2"
LATE = f"{POOL}.4"

SHARE = 0.01
"""The share of its time that the site spends on side work, at most."""

LOG_LINES = 2000

_TASKS = 20_000
_FRAME_SECONDS = 0.25
_KILL_AT, _JOIN_AT = 0.25, 0.4
_WAVE = 500
_BLOCK = 20
_HITS_PER_TURN = 5
_TURN_SECONDS = 0.005
_SESSION_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Scene:
    """What was measured at one moment."""

    seconds: float
    """Time since the site started."""
    counts: Counts
    started: int
    """How many times a task was started."""
    workers: dict[str, str]
    """The condition of each worker."""
    stolen: dict[str, int]
    """Tasks that each worker has stolen, including workers that left."""
    garbage: dict[str, int]
    ended_sessions: int
    side_work: RecruiterStats


class Story:
    """Plays the demo on a server, scene by scene."""

    def __init__(self, url: str, tasks: int = _TASKS) -> None:
        self._url = url
        self._tasks = tasks
        self._run = f"run-{time.time_ns() // 1_000_000}"
        self._queue, self._render = make_queue(url, self._run)
        self._site = _DemoSite(url, f"demo/{self._run}", self._queue)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stolen: dict[str, int] = {}
        self._to_submit = [(seconds,) for seconds in _durations(tasks)]

    @property
    def tasks(self) -> int:
        """How many tasks are submitted."""
        return self._tasks

    def play(self) -> Iterator[Scene]:
        """Yield scenes until all tasks are done; the last when everything stands still.

        Nothing is counted after the last scene, so its numbers agree with each other.
        """
        self._queue.counts()  # raises if there is no server, before anything begins
        self._site.start()
        try:
            self._submit(unfinished=0)
            for index in range(4):
                self._start_worker(index)
            while True:
                scene = self._measure()
                yield scene
                if scene.counts.unfinished <= 0 and not self._to_submit:
                    break
                self._submit(scene.counts.unfinished)
                self._interfere(scene)
                time.sleep(_FRAME_SECONDS)
            self._site.stop()
            yield self._measure()
        finally:
            self._end()

    def _submit(self, unfinished: int) -> None:
        """Submit the next wave, which is spread over the deques at once.

        From then on, stealing balances it.
        """
        if unfinished < _WAVE // 2 and self._to_submit:
            self._render.submit_many(self._to_submit[:_WAVE])
            del self._to_submit[:_WAVE]

    def _start_worker(self, index: int) -> None:
        module = "workstealing.cli.demo.demo_tasks"
        self._processes[f"{POOL}.{index}"] = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-m", module, self._url, self._run, str(index)]
        )

    def _interfere(self, scene: Scene) -> None:
        done = scene.counts.stats.get("done", 0) / self._tasks
        victim = self._processes[KILLED]
        if done >= _KILL_AT and victim.poll() is None:
            victim.kill()
            victim.wait()
        if done >= _JOIN_AT and LATE not in self._processes:
            self._start_worker(int(LATE.rpartition(".")[2]))

    def _measure(self) -> Scene:
        parts = internals_of(self._queue)
        started = parts.driver.client.get(f"{parts.keys.prefix}demo:started")
        counts = self._queue.counts()
        for name in self._processes:
            stolen = counts.stats.get(f"stolen:{name}", 0)
            self._stolen[name] = max(stolen, self._stolen.get(name, 0))
        return Scene(
            self._site.seconds,
            counts,
            int(started or 0),
            {name: self._condition(name) for name in sorted(self._processes)},
            dict(self._stolen),
            self._site.garbage(),
            self._site.ended_sessions,
            self._site.stats(),
        )

    def _condition(self, name: str) -> str:
        code = self._processes[name].poll()
        if code is None:
            return "joined late" if name == LATE else "working"
        return "killed (SIGKILL)" if code < 0 else "stopped"

    def _end(self) -> None:
        self._site.stop()
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
            process.wait()
        self._site.close()
        parts = internals_of(self._queue)
        client = parts.driver.client
        for key in client.scan_iter(f"{parts.keys.prefix}*"):
            client.unlink(key)
        self._queue.close()
        client.close()


class _DemoSite:
    """A thread that serves pages from a cache, about a thousand a second."""

    def __init__(self, url: str, prefix: str, queue: TaskQueue) -> None:
        self._client = connect(url, timeout=10.0)
        self._prefix = prefix
        self._sessions_key = f"{{{prefix}}}:sessions"
        self._log_key = f"{{{prefix}}}:log"
        self._sessions = VolatileHash(
            self._client, self._sessions_key, on_expire=self._session_ended
        )
        log = WindowTrimmer(self._client, self._log_key, length=LOG_LINES)
        self._recruiter = Recruiter(share=SHARE)
        self._recruiter.install(self._sessions, "sessions", rate=0.005)
        self._recruiter.install(log, "log", rate=0.001)
        self._recruiter.install(WorkStealer(queue, by="web"), "tasks", rate=0.003)
        self._stopping = Event()
        self._thread = Thread(target=self._serve, daemon=True)
        self._started_at = self._stopped_at = 0.0
        self.ended_sessions = 0

    @property
    def seconds(self) -> float:
        """How long the site has been serving."""
        return (self._stopped_at or time.monotonic()) - self._started_at

    def start(self) -> None:
        """Start to serve."""
        self._started_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Stop serving; the numbers stay."""
        self._stopping.set()
        self._thread.join()
        self._stopped_at = self._stopped_at or time.monotonic()

    def close(self) -> None:
        """Remove what it wrote to Redis, and disconnect."""
        for key in self._client.scan_iter(f"{{{self._prefix}}}:*"):
            self._client.unlink(key)
        self._client.close()

    def garbage(self) -> dict[str, int]:
        """Return how many items two of the jobs look after."""
        sessions: int = self._client.hlen(self._sessions_key)
        lines: int = self._client.zcard(self._log_key)
        return {"sessions": sessions, "log": lines}

    def stats(self) -> RecruiterStats:
        """Return what the recruiter has counted."""
        return self._recruiter.stats()

    def _serve(self) -> None:
        chance = random.Random(7)  # noqa: S311 - chooses visitors, nothing else
        hits = 0
        while not self._stopping.wait(_TURN_SECONDS):
            for _ in range(_HITS_PER_TURN):
                hits += 1
                self._recruiter.enlist()
            visitor = f"visitor-{chance.randrange(100_000)}"
            self._sessions.set(visitor, "signed in", ttl=_SESSION_SECONDS)
            self._client.zadd(self._log_key, {f"hit {hits}": hits})

    def _session_ended(self, _: object, __: object) -> None:
        self.ended_sessions += 1


def _durations(tasks: int) -> Iterator[float]:
    """Draw how long each task lasts: one block in twenty lasts thirty times as long.

    In blocks, so that some deques take much longer than others.
    """
    chance = random.Random(11)  # noqa: S311 - draws durations, nothing else
    seconds = 0.0
    for number in range(tasks):
        if number % _BLOCK == 0:
            seconds = 0.06 if chance.random() < 0.05 else 0.002
        yield seconds
