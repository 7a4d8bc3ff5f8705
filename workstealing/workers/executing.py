"""Where workers find what prepares their attempts: it lives in `workstealing.tasks`.

A task client that runs tasks in its own process uses the same, and may not import
workers.
"""

from __future__ import annotations

from workstealing.tasks.attempt import Attempt, Unable
from workstealing.tasks.executing import Executor

__all__ = ("Attempt", "Executor", "Unable")
