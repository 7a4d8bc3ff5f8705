"""A Dramatiq worker enlists after each message, and musters while it has none.

After a message means after it was acknowledged: its result is stored, its retry is
queued, its time limit is over, and a slice cannot make it run twice. While idle means
that no thread of the worker has a message; then a thread of its own does the slices.
"""

from __future__ import annotations

from typing import Any

from dramatiq import Broker, Middleware, Worker

from workstealing.recruiting.pacing import Every, interval
from workstealing.recruiting.patrol import Patrol
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("Enlisting",)


class Enlisting(Middleware):
    """Middleware for `broker.add_middleware(…)`.

    An idle worker does a slice every *idle_every* seconds; None leaves it alone.
    """

    def __init__(self, recruiter: Recruiter, *, idle_every: Every | None = 5.0) -> None:
        self._recruiter = recruiter
        self._idle_every = None if idle_every is None else interval(idle_every)
        self._patrol: Patrol | None = None

    def after_ack(self, broker: Broker, message: Any) -> None:  # noqa: ARG002
        """Enlist, unless it is the consumer who only moved a delayed message on."""
        if "eta" not in message.options:
            self._recruiter.enlist()

    after_nack = after_ack

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:  # noqa: ARG002
        """Begin to look after a worker without messages."""
        if self._idle_every is None:
            return

        def muster_if_idle() -> None:
            if not worker.work_queue.unfinished_tasks:
                self._recruiter.muster()

        self._patrol = Patrol(muster_if_idle, self._idle_every).start()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:  # noqa: ARG002
        """End with the worker."""
        if self._patrol is not None:
            self._patrol.stop()
            self._patrol = None
