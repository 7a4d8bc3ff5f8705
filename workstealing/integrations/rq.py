"""An RQ worker enlists after each job, and musters while its queues are empty.

    class Worker(EnlistsWhenIdle, rq.Worker):
        recruiter = recruiter

`rq worker --worker-class app.Worker` runs it. Any worker class of RQ 1.13 or later will
do, also `SimpleWorker`. Slices run in the worker itself, not in its work horses, and
between two jobs: a slice that hangs keeps it from the next one.

A warm shutdown that is asked for during a slice is kept until the slice has ended.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, ClassVar

import rq.exceptions
import rq.worker

from workstealing.clock import SYSTEM_CLOCK
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("EnlistsWhenIdle",)

logger = logging.getLogger(__name__)

# RQ 1 has it where it is raised.
_home: Any = rq.exceptions if hasattr(rq.exceptions, "StopRequested") else rq.worker
_StopRequested: type[Exception] = _home.StopRequested


class EnlistsWhenIdle:
    """Comes before a worker class, and makes it enlist."""

    recruiter: ClassVar[Recruiter]
    """Who is enlisted with."""
    idle_seconds: ClassVar[int] = 5
    """An idle worker does a slice each time that so much time has passed."""

    _is_asked_to_stop = False

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> Any:
        """Wait for a job, in pieces, with a slice between two of them."""
        own: Any = super()
        idle_since = SYSTEM_CLOCK.monotonic()
        left: float = math.inf if max_idle_time is None else max_idle_time
        while True:
            piece = math.ceil(min(self.idle_seconds, left))
            result = own.dequeue_job_and_maintain_ttl(timeout, piece)
            if result is not None:
                return result
            self._spend(self.recruiter.muster)
            if max_idle_time is not None:
                left = max_idle_time - (SYSTEM_CLOCK.monotonic() - idle_since)
            if timeout is None or left <= 0:
                return None

    def execute_job(self, job: Any, queue: Any) -> Any:
        """Execute a job, then enlist."""
        own: Any = super()
        result = own.execute_job(job, queue)
        self._spend(self.recruiter.enlist)
        return result

    def handle_warm_shutdown_request(self) -> None:
        """Take note that somebody has asked the worker to stop."""
        self._is_asked_to_stop = True
        own: Any = super()
        own.handle_warm_shutdown_request()

    def _spend(self, moment: Callable[[], object]) -> None:
        # RQ raises StopRequested from its signal handler into whatever an idle worker
        # does. Inside a slice the recruiter takes it for an error of the job.
        self._is_asked_to_stop = False
        try:
            moment()
        except Exception:
            if not self._is_asked_to_stop:
                logger.exception("a worker could not enlist; it goes on")
        if self._is_asked_to_stop:
            raise _StopRequested
