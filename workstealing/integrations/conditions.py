"""After which requests to enlist, and how long the request took.

Pure: `When` looks at a status, a duration and what the view asked for. The middlewares
of this package ask it after the response, and then enlist. Nearly all requests are
dismissed before they begin, and pass as if there were no middleware: only a request
that a job was drawn for is followed to its end.

The duration of a request decides whether it was quick enough (`When.quick`); jobs and
observers read it with `request_took()`. It does not shorten the slice: an await that
is cut off after the millisecond that was left would look like an unreachable Redis, and
would open the breaker. A slice ends by the recruiter's `deadline`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from workstealing._checks import checked_seconds
from workstealing.errors import ConfigurationError
from workstealing.recruiting.job import Duty
from workstealing.recruiting.recruiter import Recruiter

__all__ = (
    "ALWAYS",
    "ENLIST_KEY",
    "FINE",
    "When",
    "checked_recruiter",
    "checked_when",
    "enlist_after_request",
    "note_request_time",
    "request_took",
    "status_code",
)

ENLIST_KEY = "workstealing.enlist"
"""The key of a WSGI environ by which a view asks to enlist, or not to."""

FINE = frozenset({*range(200, 300), 304})
"""The statuses of a request that succeeded: 2xx and 304."""

AnyRecruiter = TypeVar("AnyRecruiter")

_took: ContextVar[float | None] = ContextVar("workstealing_took", default=None)


@dataclass(frozen=True, slots=True)
class When:
    """After which requests to enlist; all conditions must hold.

    A view that asks for itself (`request.enlist = True`, or False; each framework has
    its own way) overrides them all.
    """

    statuses: Iterable[int] | None = None
    """Only after responses with one of these statuses; None means any."""
    below: float | None = None
    """Only after requests that took fewer seconds than this; None means any."""
    only_asked: bool = False
    """Only where the view asks for it."""

    def __post_init__(self) -> None:
        if self.statuses is not None:
            object.__setattr__(self, "statuses", _checked_statuses(self.statuses))
        if self.below is not None:
            object.__setattr__(self, "below", checked_seconds(self.below, "below"))
        if not isinstance(self.only_asked, bool):
            raise ConfigurationError(
                f"only_asked must be True or False, not {self.only_asked!r}"
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
        """Only where the view asks for it."""
        return cls(only_asked=True)

    def allows(self, status: int, took: float, asked: bool | None) -> bool:
        """Return whether to enlist after a request.

        Args:
            status: of its response.
            took: its seconds, from entering the middleware to the end of the body.
            asked: what the view asked for, None if it did not.
        """
        if asked is not None:
            return bool(asked)
        if self.only_asked:
            return False
        if self.below is not None and not took < self.below:
            return False
        return self.statuses is None or status in self.statuses


ALWAYS = When.always()
"""The default of all integrations."""


def checked_when(when: object) -> When:
    """Return it if it is a `When`.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(when, When):
        raise ConfigurationError(
            f"when must be a When, such as When.quick(0.1), not {when!r}"
        )
    return when


def checked_recruiter(
    recruiter: object, kind: type[AnyRecruiter], host: str
) -> AnyRecruiter:
    """Return it if it is of the kind that the host can use.

    Raises:
        ConfigurationError: it is something else; the message names the host.
    """
    if not isinstance(recruiter, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        hint = (
            ": a slice of a Recruiter would block the event loop"
            if isinstance(recruiter, Recruiter)
            else ""
        )
        raise ConfigurationError(
            f"{host} enlists with {article} {kind.__name__}, not with"
            f" {recruiter!r}{hint}"
        )
    return recruiter


@lru_cache(maxsize=64)
def status_code(status: str) -> int:
    """Return 200 for "200 OK", and 0 for anything that is not a status line."""
    code = status[:3]
    return int(code) if code.isdecimal() else 0


def enlist_after_request(recruiter: Recruiter, took: float) -> Duty:
    """Enlist after a request that took *took* seconds."""
    if recruiter.would_dismiss():
        return Duty.DISMISSED
    token = _took.set(took)
    try:
        return recruiter.enlist()
    finally:
        _took.reset(token)


def note_request_time(seconds: float) -> None:
    """Remember how long the request took, for a slice that may follow it.

    For asyncio, where each request has a context of its own and nothing needs to be
    reset.
    """
    _took.set(seconds)


def request_took() -> float | None:
    """Return the seconds of the request that the running slice follows.

    For jobs and observers; None if the slice does not follow a request.
    """
    return _took.get()


def _checked_statuses(statuses: Iterable[int]) -> frozenset[int]:
    try:
        checked = frozenset(statuses)
    except TypeError:
        checked = frozenset()
    if not checked or not all(_is_status(status) for status in checked):
        raise ConfigurationError(
            "statuses must be status codes from 100 to 599, such as {200, 304} or"
            f" range(200, 300), not {statuses!r}"
        )
    return checked


def _is_status(status: object) -> bool:
    return type(status) is int and 100 <= status <= 599
