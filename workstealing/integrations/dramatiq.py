"""A Dramatiq worker enlists after each message, and runs slices while it is idle.

After a message means after it was acknowledged: its result is stored, its retry is
queued, its time limit is over, and a slice cannot make it run twice. Idle means that no
thread of the worker has a message; then a thread of its own runs the slices.
"""

from __future__ import annotations

from typing import Any

from dramatiq import Broker, Middleware, Worker

from workstealing.integrations.conditions import checked_recruiter
from workstealing.recruiting.job import Every, checked_interval
from workstealing.recruiting.recruiter import Recruiter, Ticker

__all__ = ("DramatiqEnlistMiddleware",)


class DramatiqEnlistMiddleware(Middleware):
    """Middleware for `broker.add_middleware(…)`.

    An idle worker runs a slice every *idle_every* seconds; None leaves it alone.
    """

    def __init__(self, recruiter: Recruiter, *, idle_every: Every | None = 5.0) -> None:
        self._recruiter = checked_recruiter(recruiter, Recruiter, "a Dramatiq worker")
        self._idle_every = (
            None if idle_every is None else checked_interval(idle_every, "idle_every=")
        )
        self._ticker: Ticker | None = None

    def after_ack(self, broker: Broker, message: Any) -> None:  # noqa: ARG002
        """Enlist, unless the consumer only put a delayed message back."""
        if "eta" not in message.options:
            self._recruiter.enlist()

    after_nack = after_ack

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:  # noqa: ARG002
        """Start the thread that runs slices while the worker is idle."""
        if self._idle_every is None:
            return

        def run_if_idle() -> None:
            if not worker.work_queue.unfinished_tasks:
                self._recruiter.run_now()

        self._ticker = Ticker(run_if_idle, self._idle_every).start()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:  # noqa: ARG002
        """Stop that thread."""
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
