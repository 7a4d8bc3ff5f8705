"""What all cache integrations share: a hit enlists, a miss calls `on_miss`.

Nothing of it reaches the host: `enlist()` never raises, and what `on_miss` raises is
logged, the first time in full and then a line a minute. A miss inside `on_miss` is not
told again, so a hook may read the cache that it hangs on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing.clock import SYSTEM_CLOCK
from workstealing.errors import ConfigurationError
from workstealing.recruiting.recruiter import Recruiter
from workstealing.telemetry.throttle import Throttle

if TYPE_CHECKING:
    from workstealing.recruiting.aio import AsyncRecruiter

__all__ = ("AsyncHooks", "Hooks", "OnMiss", "adopt")

logger = logging.getLogger(__name__)

OnMiss = Callable[..., object]
T = TypeVar("T")

_MARK = "_workstealing_enlists"

_inside_on_miss: ContextVar[bool] = ContextVar("_inside_on_miss", default=False)


class Hooks:
    """The hooks of a cache whose callers do not await.

    `hit` is the recruiter's own `enlist`: a dismissed hit costs no call besides.
    """

    __slots__ = ("_on_miss", "_throttle", "hit")

    def __init__(
        self, recruiter: Recruiter | AsyncRecruiter, on_miss: OnMiss | None
    ) -> None:
        if not isinstance(recruiter, Recruiter):
            raise ConfigurationError(
                f"a cache that is not awaited enlists with a Recruiter, not with"
                f" {recruiter!r}"
            )
        self.hit = recruiter.enlist
        self._on_miss = _checked(on_miss)
        self._throttle = Throttle()

    def miss(self, *what: Any, **named: Any) -> None:
        """Tell `on_miss` what was missing, if anybody wants to know."""
        if self._on_miss is not None and not _inside_on_miss.get():
            with _told(self._throttle):
                self._on_miss(*what, **named)


class AsyncHooks:
    """The hooks of a cache whose callers await; so may `on_miss`."""

    __slots__ = ("_on_miss", "_throttle", "hit")

    def __init__(
        self, recruiter: Recruiter | AsyncRecruiter, on_miss: OnMiss | None
    ) -> None:
        # Not imported at the top: caches that are not awaited need no asyncio.
        from workstealing.recruiting.aio import AsyncRecruiter

        if not isinstance(recruiter, AsyncRecruiter):
            raise ConfigurationError(
                f"a cache that is awaited enlists with an AsyncRecruiter, not with"
                f" {recruiter!r}: a slice of that one would block the event loop"
            )
        self.hit = recruiter.enlist
        self._on_miss = _checked(on_miss)
        self._throttle = Throttle()

    async def miss(self, *what: Any, **named: Any) -> None:
        """Tell `on_miss` what was missing, if anybody wants to know."""
        if self._on_miss is not None and not _inside_on_miss.get():
            with _told(self._throttle):
                answer = self._on_miss(*what, **named)
                if isawaitable(answer):
                    await answer


def adopt(host: T, derive: Callable[[Any], type]) -> T:
    """Make an object one of a class that *derive* derives from its own.

    It stays the same object: what `isinstance`, attributes and other holders of it see
    does not change.
    """
    own = type(host)
    if own.__dict__.get(_MARK):
        raise ConfigurationError(f"{host!r} has its hooks already")
    derived = derive(own)
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(derived, name, getattr(own, name))
    setattr(derived, _MARK, True)
    try:
        host.__class__ = derived
    except TypeError as error:
        raise ConfigurationError(
            f"objects of {own!r} take no hooks, for their layout is fixed: {error}"
        ) from error
    return host


def _checked(on_miss: OnMiss | None) -> OnMiss | None:
    if on_miss is not None and not callable(on_miss):
        raise ConfigurationError(f"on_miss= takes a function, not {on_miss!r}")
    return on_miss


@contextmanager
def _told(throttle: Throttle) -> Iterator[None]:
    token = _inside_on_miss.set(True)
    try:
        yield
    except Exception as error:  # noqa: BLE001 - nothing reaches the host
        throttle.report(logger, "on_miss", error, SYSTEM_CLOCK.monotonic())
    finally:
        _inside_on_miss.reset(token)
