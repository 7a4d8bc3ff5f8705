"""Lets a fleet come to rest: no faults, no input, no pauses; then everybody leaves.

What does not come to rest is stuck, and the queue is asked why.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from soak import app
from soak.fleet import Fleet
from workstealing import Inspector, connect
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError, WorkStealingError

__all__ = ("calm_down",)

_WORKERS = ("worker", "threads", "asyncio", "processes")
_SOON_MS = 600_000
_SHOWN = 3


def calm_down(fleet: Fleet, seconds: float) -> list[str]:
    """Wait until nothing is left to do, and let all leave; return what is stuck."""
    end = time.monotonic() + seconds
    for member in fleet.members:
        member.send(signal.SIGCONT)
    fleet.dismiss(("producer",))
    _insist(_let_all_run, end)
    is_drained = _insist(_is_drained, end)
    stuck = [] if is_drained else _what_is_stuck()
    is_counted = _insist(lambda: app.counters.pending() == 0, end)
    if not is_counted:
        stuck.append("counters do not reach their store")
    fleet.dismiss(_WORKERS)
    if not _insist(lambda: not app.queue.counts().leases, end):
        stuck.append(f"workers that left have leases: {app.queue.counts().leases}")
    if not _insist(_is_swept, end):
        stuck.append("fields that expired are not swept")
    fleet.dismiss(("host",))
    return stuck


def _let_all_run() -> bool:
    app.queue.schedule_handle("second").pause()
    for name in (None, "pausable"):
        app.queue.resume(name)
    with suppress(ConfigurationError):  # nobody has submitted a limited task
        app.queue.reset_limit("customer")
    return not app.queue.paused()


def _is_drained() -> bool:
    """Tell whether only what is due in an hour, or known to nobody, is left."""
    counts = app.queue.counts()
    soon = 0
    with connect(app.URL, profile="tasks") as client:
        for keys in internals_of(app.queue).shards.all:
            until: Any = counts.now_ms + _SOON_MS
            soon += int(cast(int, client.zcount(keys.later, "-inf", until)))
    return counts.unfinished == counts.delayed and not counts.steps and not soon


def _what_is_stuck() -> list[str]:
    inspector = Inspector(app.queue)
    counts = app.queue.counts()
    stuck = [f"not all is done: {counts}"]
    for place in ("inbox", "lines", "assigned", "running", "steps", "aside"):
        with suppress(WorkStealingError, ValueError):
            stuck += [
                f"stuck in {place}: {inspector.why(task.id)}"
                for task in inspector.ls(place, _SHOWN)
            ]
    return stuck


def _is_swept() -> bool:
    with connect(app.URL, profile="tasks") as client:
        left: Any = client.keys("soak-fields*")
    return not left


def _insist(condition: Callable[[], bool], end: float) -> bool:
    """Wait until it is true, whatever is raised meanwhile."""
    while time.monotonic() < end:
        with suppress(WorkStealingError):
            if condition():
                return True
        time.sleep(0.2)
    return False
