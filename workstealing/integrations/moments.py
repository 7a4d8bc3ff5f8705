"""When a request is a moment to enlist, and how long it took.

Pure: it looks at a status, a duration and what the view said. The middlewares of this
package ask it after the response, and then `offer()` the moment to their recruiter.
Nearly all requests are dismissed before they begin, and pass as if we were not there:
only one that somebody is drawn for is followed to its end.

The time that a request took decides whether it is quick enough (`When.quick`), and jobs
and observers can ask for it by `request_took()`. It does not shorten the slice: an
await that is cut off after the millisecond that was left would look like a Redis that
is away, and would be held against it. A slice ends by the recruiter's `deadline`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass

from workstealing.errors import ConfigurationError
from workstealing.recruiting.job import Duty
from workstealing.recruiting.protection import is_above_zero
from workstealing.recruiting.recruiter import Recruiter

__all__ = (
    "ALWAYS",
    "FINE",
    "When",
    "checked_when",
    "offer",
    "request_took",
    "tell_took",
)

FINE = frozenset({*range(200, 300), 304})
"""The statuses of a request that went well: 2xx and 304."""

_took: ContextVar[float | None] = ContextVar("workstealing_took", default=None)


@dataclass(frozen=True, slots=True)
class When:
    """After which requests to enlist; all conditions must hold.

    A view that says so itself (`request.enlist = True`, or False; how, is up to the
    framework) overrides them all.
    """

    statuses: Iterable[int] | None = None
    """Only after these; None is any."""
    below: float | None = None
    """Only after requests that took less than so many seconds; None is any."""
    only_asked: bool = False
    """Only where the view says so."""

    def __post_init__(self) -> None:
        if self.statuses is not None:
            object.__setattr__(self, "statuses", _checked_statuses(self.statuses))
        if self.below is not None and not is_above_zero(self.below):
            raise ConfigurationError(
                f"below= takes seconds above 0, such as 0.05, not {self.below!r}"
            )
        if not isinstance(self.only_asked, bool):
            raise ConfigurationError(
                f"only_asked= takes True or False, not {self.only_asked!r}"
            )

    @classmethod
    def always(cls) -> When:
        """After every request that got its response."""
        return cls()

    @classmethod
    def fine(cls) -> When:
        """Only after 2xx and 304."""
        return cls(statuses=FINE)

    @classmethod
    def quick(cls, below: float) -> When:
        """Only after 2xx and 304 that took less than *below* seconds."""
        return cls(statuses=FINE, below=below)

    @classmethod
    def asked(cls) -> When:
        """Only where the view says so."""
        return cls(only_asked=True)

    def allows(self, status: int, took: float, asked: bool | None) -> bool:
        """Tell whether to enlist after a request.

        Args:
            status: of its response.
            took: its seconds, from the first line of ours to the end of the body.
            asked: what the view said, None if it said nothing.
        """
        if asked is not None:
            return bool(asked)
        if self.only_asked:
            return False
        if self.below is not None and not took < self.below:
            return False
        return self.statuses is None or status in self.statuses


ALWAYS = When.always()
"""After which requests to enlist unless it is said."""


def checked_when(when: object) -> When:
    """Return it if it is a `When`.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(when, When):
        raise ConfigurationError(f"when= takes a When, not {when!r}")
    return when


def offer(recruiter: Recruiter, took: float) -> Duty:
    """Enlist after a request that took so many seconds."""
    if recruiter.dismisses():
        return Duty.DISMISSED
    token = _took.set(took)
    try:
        return recruiter.enlist()
    finally:
        _took.reset(token)


def tell_took(seconds: float) -> None:
    """Say how long the request took that a slice may follow.

    For asyncio, where each request has a context of its own and nothing is to be put
    back.
    """
    _took.set(seconds)


def request_took() -> float | None:
    """Return the seconds of the request that the running slice follows.

    For jobs and observers; None where no request is followed.
    """
    return _took.get()


def _checked_statuses(statuses: Iterable[int]) -> frozenset[int]:
    try:
        checked = frozenset(statuses)
    except TypeError:
        checked = frozenset()
    if not checked or not all(_is_status(status) for status in checked):
        raise ConfigurationError(
            "statuses= takes status codes from 100 to 599, such as {200, 304} or"
            f" range(200, 300), not {statuses!r}"
        )
    return checked


def _is_status(status: object) -> bool:
    return type(status) is int and 100 <= status <= 599
