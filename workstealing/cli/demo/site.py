"""A busy little site: cache hits that enlist, and garbage that they collect."""

from __future__ import annotations

import random
from threading import Event, Thread

from workstealing.client.queue import TaskQueue
from workstealing.drivers.connect import connect
from workstealing.jobs import VolatileHash, WindowTrimmer
from workstealing.recruiting.recruiter import Recruiter
from workstealing.recruiting.stats import RecruiterStats
from workstealing.workers.upkeep import WorkStealer

__all__ = ("Site",)

_HITS_PER_TURN = 5
_TURN_SECONDS = 0.005
_LOG_LINES = 2000


class Site:
    """A thread that serves pages from a cache, at about a thousand a second."""

    def __init__(self, url: str, prefix: str, queue: TaskQueue) -> None:
        self._client = connect(url, timeout=1.0)
        self._prefix = prefix
        self._sessions_key = f"{{{prefix}}}:sessions"
        self._log_key = f"{{{prefix}}}:log"
        self.ended_sessions = 0
        self.recruiter = Recruiter()
        sessions = VolatileHash(
            self._client, self._sessions_key, on_expire=self._session_ended
        )
        log = WindowTrimmer(self._client, self._log_key, length=_LOG_LINES)
        self.recruiter.install(sessions, "sessions", rate=0.01)
        self.recruiter.install(log, "log", rate=0.005)
        self.recruiter.install(WorkStealer(queue, by="web"), "tasks", rate=0.005)
        self._sessions = sessions
        self._stopping = Event()
        self._thread = Thread(target=self._serve, daemon=True)
        self.hits = 0

    def start(self) -> None:
        """Open the site."""
        self._thread.start()

    def stop(self) -> None:
        """Close it, and remove what it wrote."""
        self._stopping.set()
        self._thread.join()
        for key in self._client.scan_iter(f"{{{self._prefix}}}:*"):
            self._client.unlink(key)
        self._client.close()

    def backlog(self) -> dict[str, int]:
        """Return how much each job has to look after."""
        sessions: int = self._client.hlen(self._sessions_key)
        lines: int = self._client.zcard(self._log_key)
        return {"sessions": sessions, "log": lines}

    def stats(self) -> RecruiterStats:
        """Return what the recruiter counted."""
        return self.recruiter.stats()

    def _serve(self) -> None:
        chance = random.Random(7)  # noqa: S311 - whose session it is, nothing else
        while not self._stopping.wait(_TURN_SECONDS):
            for _ in range(_HITS_PER_TURN):
                self.hits += 1
                self.recruiter.enlist()
            visitor = f"visitor-{chance.randrange(100_000)}"
            self._sessions.set(visitor, "signed in", ttl=2.0)
            self._client.zadd(self._log_key, {f"hit {self.hits}": self.hits})

    def _session_ended(self, _: object, __: object) -> None:
        self.ended_sessions += 1
