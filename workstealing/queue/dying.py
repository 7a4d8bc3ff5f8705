"""How a task ends that died with its workers, whoever notices it."""

from __future__ import annotations

from workstealing.queue.settings import QueueSettings
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.restart import OUTCOME_UNKNOWN

__all__ = ("outcome_of_deaths", "outcome_unknown")


def outcome_of_deaths(settings: QueueSettings) -> bytes:
    """Return the outcome of a task whose workers died too often."""
    reason = f"its worker died {settings.deaths} times"
    return TaskOutcome(state="dead", reason=reason).encode()


def outcome_unknown(*, left: bool = False) -> bytes:
    """Return the outcome of a task that was begun and must not be run twice."""
    what = "was stopped" if left else "died"
    reason = f"{OUTCOME_UNKNOWN}: its worker {what} while it ran"
    return TaskOutcome(state="dead", reason=reason).encode()
