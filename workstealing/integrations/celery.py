"""A Celery worker enlists after each task, and musters while it has none.

- After a task: by the signal `task_postrun`, in the process or thread that ran it.
- While idle: by a timer of the worker, a boot step that is added to the application.
  It runs where the worker's timer does, with most brokers in its event loop: a slice
  keeps the worker from receiving messages for as long as it lasts.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery
from celery.bootsteps import StartStopStep
from celery.signals import task_postrun
from celery.worker import state

from workstealing.recruiting.pacing import Every, interval
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("enlists",)

logger = logging.getLogger(__name__)


def enlists(
    app: Celery, recruiter: Recruiter, *, idle_every: Every | None = 5.0
) -> None:
    """Let the workers of an application enlist.

    An idle worker does a slice every *idle_every* seconds; None leaves it alone.
    """

    def enlist(sender: Any = None, **_: object) -> None:
        # The signal is one for all applications of a process.
        if getattr(sender, "app", None) is app:
            recruiter.enlist()

    task_postrun.connect(enlist, weak=False)
    if idle_every is not None:
        app.steps["worker"].add(_idle_step(recruiter, interval(idle_every)))


def _idle_step(recruiter: Recruiter, every: float) -> type:
    class EnlistsWhenIdle(StartStopStep):  # type: ignore[misc]
        """Musters every few seconds, if no task is being executed."""

        requires = frozenset({"celery.worker.components:Timer"})

        def __init__(self, worker: Any, **options: Any) -> None:
            super().__init__(worker, **options)
            self._entry: Any = None

        def start(self, worker: Any) -> None:
            self._entry = worker.timer.call_repeatedly(every, _muster, (recruiter,))

        def stop(self, worker: Any) -> None:  # noqa: ARG002 - as Celery calls it
            if self._entry is not None:
                self._entry.cancel()
                self._entry = None

        terminate = stop

    return EnlistsWhenIdle


def _muster(recruiter: Recruiter) -> None:
    if state.active_requests or state.reserved_requests:
        return
    try:
        recruiter.muster()
    except Exception:
        logger.exception("an idle worker could not muster; it goes on")
