"""What all cache integrations share: a hit enlists, a miss calls `on_miss`.

No exception reaches the host: `enlist()` never raises, and what `on_miss` raises is
logged, the first time with its traceback and then one line a minute. A miss inside
`on_miss` does not call it again, so it may read the cache that it is a hook of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing._printing import escaping_logger
from workstealing.clock import SYSTEM_CLOCK
from workstealing.errors import ConfigurationError
from workstealing.integrations.conditions import checked_recruiter
from workstealing.recruiting.recruiter import Recruiter
from workstealing.telemetry.observers import Throttle

if TYPE_CHECKING:
    from workstealing.recruiting.async_recruiter import AsyncRecruiter

__all__ = ("AsyncCacheHooks", "CacheHooks", "OnMiss", "derive_class")

logger = escaping_logger(__name__)

OnMiss = Callable[..., object]
T = TypeVar("T")

_MARK = "_workstealing_enlists"

_inside_on_miss: ContextVar[bool] = ContextVar("_inside_on_miss", default=False)


class CacheHooks:
    """The hooks of a cache that is not awaited.

    `hit` is the recruiter's own `enlist`: a dismissed hit costs no other call.
    """

    __slots__ = ("_on_miss", "_throttle", "hit")

    def __init__(
        self, recruiter: Recruiter | AsyncRecruiter, on_miss: OnMiss | None
    ) -> None:
        self.hit = checked_recruiter(
            recruiter, Recruiter, "a cache that is not awaited"
        ).enlist
        self._on_miss = _checked(on_miss)
        self._throttle = Throttle()

    def miss(self, *args: Any, **kwargs: Any) -> None:
        """Call `on_miss`, if there is one, with what was missing."""
        if self._on_miss is not None and not _inside_on_miss.get():
            with _logged(self._throttle):
                self._on_miss(*args, **kwargs)


class AsyncCacheHooks:
    """The hooks of a cache that is awaited; `on_miss` may be awaited too."""

    __slots__ = ("_on_miss", "_throttle", "hit")

    def __init__(
        self, recruiter: Recruiter | AsyncRecruiter, on_miss: OnMiss | None
    ) -> None:
        # Only here: caches that are not awaited do not need asyncio.
        from workstealing.recruiting.async_recruiter import AsyncRecruiter

        self.hit = checked_recruiter(
            recruiter, AsyncRecruiter, "a cache that is awaited"
        ).enlist
        self._on_miss = _checked(on_miss)
        self._throttle = Throttle()

    async def miss(self, *args: Any, **kwargs: Any) -> None:
        """Call `on_miss`, if there is one, with what was missing."""
        if self._on_miss is not None and not _inside_on_miss.get():
            with _logged(self._throttle):
                answer = self._on_miss(*args, **kwargs)
                if isawaitable(answer):
                    await answer


def derive_class(host: T, derive: Callable[[Any], type]) -> T:
    """Change the class of an object to a subclass that *derive* makes of it.

    It stays the same object, so that `isinstance`, its attributes and all references to
    it work as before.
    """
    own = type(host)
    if own.__dict__.get(_MARK):
        raise ConfigurationError(
            f"this {own.__name__} enlists already: with hooks for a second time, each"
            " hit would enlist twice"
        )
    derived = derive(own)
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(derived, name, getattr(own, name))
    setattr(derived, _MARK, True)
    try:
        host.__class__ = derived
    except TypeError as error:
        raise ConfigurationError(
            f"a {own.__name__} cannot be made to enlist, because its class cannot be"
            f" changed: {error}"
        ) from error
    return host


def _checked(on_miss: OnMiss | None) -> OnMiss | None:
    if on_miss is not None and not callable(on_miss):
        raise ConfigurationError(f"on_miss must be a function, not {on_miss!r}")
    return on_miss


@contextmanager
def _logged(throttle: Throttle) -> Iterator[None]:
    token = _inside_on_miss.set(True)
    try:
        yield
    except Exception as error:  # noqa: BLE001 - must not reach the host
        throttle.report(logger, "on_miss", error, SYSTEM_CLOCK.monotonic())
    finally:
        _inside_on_miss.reset(token)
