"""What happens in the demo, and when: four workers, one killed, one late."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from workstealing.cli.demo.site import Site
from workstealing.cli.demo.tasks import POOL, make_queue
from workstealing.queue.reading import Counts
from workstealing.recruiting.stats import RecruiterStats

__all__ = ("KILLED", "LATE", "Scene", "Story")

KILLED = f"{POOL}.2"
LATE = f"{POOL}.4"

_TASKS = 20_000
_FRAME_SECONDS = 0.25
_KILL_AT, _JOIN_AT = 0.25, 0.4
_WAVE = 500


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of the story."""

    seconds: float
    counts: Counts
    begun: int
    workers: dict[str, str]
    """Each worker, and how it is."""
    stolen: dict[str, int]
    """How many tasks each has stolen, those that left included."""
    hits: int
    backlog: dict[str, int]
    ended_sessions: int
    side_work: RecruiterStats


class Story:
    """Plays the demo on a server, frame by frame."""

    def __init__(self, url: str, tasks: int = _TASKS) -> None:
        self._url = url
        self._tasks = tasks
        self._run = f"run-{time.time_ns() // 1_000_000}"
        self._queue, self._render = make_queue(url, self._run)
        self._site = Site(url, f"demo/{self._run}", self._queue)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stolen: dict[str, int] = {}
        chance = random.Random(11)  # noqa: S311 - how long a task lasts, nothing else
        self._to_submit = [
            (0.06 if chance.random() < 0.05 else 0.002,) for _ in range(tasks)
        ]

    def play(self) -> Iterator[Scene]:
        """Yield what is to be seen, until all tasks are done."""
        self._queue.counts()  # raises if there is no server, before anything begins
        self._site.start()
        try:
            self._feed(unfinished=0)
            for index in range(4):
                self._hire(index)
            began_at = time.monotonic()
            while True:
                scene = self._look(time.monotonic() - began_at)
                yield scene
                if scene.counts.unfinished <= 0 and not self._to_submit:
                    return
                self._feed(scene.counts.unfinished)
                self._interfere(scene)
                time.sleep(_FRAME_SECONDS)
        finally:
            self._end()

    @property
    def tasks(self) -> int:
        """How many tasks are submitted."""
        return self._tasks

    def _feed(self, unfinished: int) -> None:
        """Submit the next wave. One task in twenty lasts thirty times as long.

        A wave is spread over the deques at once; from then on, stealing evens it out.
        """
        if unfinished < _WAVE // 2 and self._to_submit:
            self._render.submit_many(self._to_submit[:_WAVE])
            del self._to_submit[:_WAVE]

    def _hire(self, index: int) -> None:
        module = "workstealing.cli.demo.tasks"
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
            self._hire(int(LATE.rpartition(".")[2]))

    def _look(self, seconds: float) -> Scene:
        begun = self._queue.driver.client.get(f"{self._queue.keys.prefix}demo:begun")
        counts = self._queue.counts()
        for name in self._processes:
            stolen = counts.stats.get(f"stolen:{name}", 0)
            self._stolen[name] = max(stolen, self._stolen.get(name, 0))
        return Scene(
            seconds,
            counts,
            int(begun or 0),
            {name: self._condition(name) for name in sorted(self._processes)},
            dict(self._stolen),
            self._site.hits,
            self._site.backlog(),
            self._site.ended_sessions,
            self._site.stats(),
        )

    def _condition(self, name: str) -> str:
        code = self._processes[name].poll()
        if code is None:
            return "joined late" if name == LATE else "working"
        return "killed (SIGKILL)" if code < 0 else "went home"

    def _end(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
            process.wait()
        self._site.stop()
        client = self._queue.driver.client
        for key in client.scan_iter(f"{self._queue.keys.prefix}*"):
            client.unlink(key)
        self._queue.driver.close()
        client.close()
