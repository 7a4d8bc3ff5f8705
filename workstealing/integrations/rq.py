"""An RQ worker enlists after each job, and runs slices while its queues are empty.

    class Worker(RqEnlistMixin, rq.Worker):
        recruiter = recruiter

Run it with `rq worker --worker-class app.Worker`. Any worker class of RQ 1.13 or later
will do, including `SimpleWorker`. Slices run in the worker itself, not in its work
horses, and between two jobs: a slice that hangs keeps it from the next one.

A warm shutdown that is requested during a slice waits until the slice has ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import rq.exceptions
import rq.worker

from workstealing._printing import escaping_logger
from workstealing.clock import SYSTEM_CLOCK
from workstealing.recruiting.job import checked_interval
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("RqEnlistMixin",)

logger = escaping_logger(__name__)

# RQ 1 has it where it is raised.
_home: Any = rq.exceptions if hasattr(rq.exceptions, "StopRequested") else rq.worker
_StopRequested: type[Exception] = _home.StopRequested


class RqEnlistMixin:
    """Makes a worker class enlist; comes before it in the list of base classes."""

    recruiter: ClassVar[Recruiter]
    """What to enlist with."""
    idle_every: ClassVar[int | None] = 5
    """Whole seconds between two slices of an idle worker; None runs none."""

    _is_asked_to_stop = False

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> Any:
        """Wait for a job, a few seconds at a time, with a slice in between."""
        own: Any = super()
        if self.idle_every is None:
            return own.dequeue_job_and_maintain_ttl(timeout, max_idle_time)
        every = checked_interval(self.idle_every, "idle_every=")
        idle_since = SYSTEM_CLOCK.monotonic()
        left: float = math.inf if max_idle_time is None else max_idle_time
        while True:
            seconds = math.ceil(min(every, left))
            result = own.dequeue_job_and_maintain_ttl(timeout, seconds)
            if result is not None:
                return result
            self._run_slice(self.recruiter.run_now)
            if max_idle_time is not None:
                left = max_idle_time - (SYSTEM_CLOCK.monotonic() - idle_since)
            if timeout is None or left <= 0:
                return None

    def execute_job(self, job: Any, queue: Any) -> Any:
        """Execute a job, then enlist."""
        own: Any = super()
        result = own.execute_job(job, queue)
        self._run_slice(self.recruiter.enlist)
        return result

    def handle_warm_shutdown_request(self) -> None:
        """Remember that the worker was asked to stop."""
        self._is_asked_to_stop = True
        own: Any = super()
        own.handle_warm_shutdown_request()

    def _run_slice(self, run: Callable[[], object]) -> None:
        # RQ's signal handler raises StopRequested into whatever an idle worker does.
        # Inside a slice the recruiter takes it for an error of the job.
        self._is_asked_to_stop = False
        try:
            run()
        except Exception:
            if not self._is_asked_to_stop:
                logger.exception("a slice of side work failed; the worker continues")
        if self._is_asked_to_stop:
            raise _StopRequested
