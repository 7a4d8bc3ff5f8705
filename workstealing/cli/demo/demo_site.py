"""The web site of the demo: cache hits that enlist, and garbage that they collect."""

from __future__ import annotations

import random
import time
from threading import Event, Thread

from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import connect
from workstealing.jobs import VolatileHash, WindowTrimmer
from workstealing.recruiting.recruiter import Recruiter
from workstealing.recruiting.stats import RecruiterStats
from workstealing.workers.upkeep import WorkStealer

__all__ = ("LOG_LINES", "SHARE", "DemoSite")

SHARE = 0.01
"""The share of its time that the site spends on side work, at most."""

LOG_LINES = 2000

_HITS_PER_TURN = 5
_TURN_SECONDS = 0.005
_SESSION_SECONDS = 2.0


class DemoSite:
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
        """How long it has been serving."""
        return (self._stopped_at or time.monotonic()) - self._started_at

    def start(self) -> None:
        """Open the site."""
        self._started_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Serve no more; its numbers stay."""
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
