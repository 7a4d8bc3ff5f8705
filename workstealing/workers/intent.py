"""Says that a task which must not be run twice is run now, before it is.

So whoever finds its worker dead knows that it was begun, and does not run it again.
"""

from __future__ import annotations

from collections.abc import Callable

from workstealing.drivers.sync import Driver
from workstealing.queue.handing import begin
from workstealing.tasks.attempt import Attempt
from workstealing.workers.member import Member

__all__ = ("intent",)


def intent(driver: Driver, member: Member) -> Callable[[Attempt], bool]:
    """Return what asks whether an attempt may be begun; it raises `RedisError`."""

    def may_begin(attempt: Attempt) -> bool:
        return driver.call(begin(member.keys, member.name, attempt.task))

    return may_begin
