"""A Celery worker enlists after each task, and runs slices while it is idle.

- After a task: by the signal `task_postrun`, in the process or thread that ran it.
- While idle: by a timer of the worker, a boot step that is added to the application. It
  runs where the worker's timer does, with most brokers in its event loop: while a slice
  runs, the worker does not receive messages.
"""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.bootsteps import StartStopStep
from celery.signals import task_postrun
from celery.worker import state

from workstealing._printing import escaping_logger
from workstealing.integrations.conditions import checked_recruiter
from workstealing.recruiting.job import Every, checked_interval
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("enlist_after_tasks",)

logger = escaping_logger(__name__)


def enlist_after_tasks(
    app: Celery, recruiter: Recruiter, *, idle_every: Every | None = 5.0
) -> Celery:
    """Let the workers of an application enlist after each task; returns the same app.

    An idle worker runs a slice every *idle_every* seconds; None leaves it alone.
    """
    checked_recruiter(recruiter, Recruiter, "a Celery worker")

    def enlist(sender: Any = None, **_: object) -> None:
        # The signal is shared by all applications of a process.
        if getattr(sender, "app", None) is app:
            recruiter.enlist()

    task_postrun.connect(enlist, weak=False)
    if idle_every is not None:
        app.steps["worker"].add(
            _idle_step(recruiter, checked_interval(idle_every, "idle_every="))
        )
    return app


def _idle_step(recruiter: Recruiter, every: float) -> type:
    class CeleryIdleStep(StartStopStep):  # type: ignore[misc]
        """Runs a slice every few seconds, if no task is being executed."""

        requires = frozenset({"celery.worker.components:Timer"})

        def __init__(self, worker: Any, **options: Any) -> None:
            super().__init__(worker, **options)
            self._entry: Any = None

        def start(self, worker: Any) -> None:
            self._entry = worker.timer.call_repeatedly(
                every, _run_if_idle, (recruiter,)
            )

        def stop(self, worker: Any) -> None:  # noqa: ARG002 - Celery passes it
            if self._entry is not None:
                self._entry.cancel()
                self._entry = None

        terminate = stop

    return CeleryIdleStep


def _run_if_idle(recruiter: Recruiter) -> None:
    if state.active_requests or state.reserved_requests:
        return
    try:
        recruiter.run_now()
    except Exception:
        logger.exception("a slice of side work failed; the worker continues")
