"""How a task ends whose workers died too often, whoever notices it."""

from __future__ import annotations

from workstealing.queue.settings import QueueSettings
from workstealing.tasks.outcome import TaskOutcome

__all__ = ("outcome_of_deaths",)


def outcome_of_deaths(settings: QueueSettings) -> bytes:
    """Return the outcome of a task that is given up."""
    reason = f"its worker died {settings.deaths} times"
    return TaskOutcome(state="dead", reason=reason).encode()
