"""Hooks on memoized functions: `functools.lru_cache` and everything like it.

- `memoized` takes the decorator that you use. It recognises hits exactly, because it
  also sees whether your function was called, and it enlists after the decorator has
  returned, so outside of any lock that the decorator holds.
- `enlist_on_hits` wraps a function that is memoized already and has `cache_info`, and
  reads its counters. If another thread has a hit at the same moment, a miss may be
  taken for a hit.

The function that they return has the name, signature and attributes (`cache_info`,
`cache_clear`, …) of the one it wraps, and returns and raises the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import update_wrapper, wraps
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.integrations.cache_hooks import AsyncCacheHooks, CacheHooks, OnMiss
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from workstealing.recruiting.async_recruiter import AsyncRecruiter

__all__ = ("enlist_on_hits", "memoized")

# Not bound to Callable: some decorators take or return other objects.
Function = TypeVar("Function")
Cached = TypeVar("Cached")


def memoized(
    memoize: Callable[[Function], Cached],
    recruiter: Recruiter | AsyncRecruiter,
    *,
    on_miss: OnMiss | None = None,
) -> Callable[[Function], Cached]:
    """Decorate a function with *memoize*, and enlist after each hit.

    `@memoized(lru_cache(maxsize=128), recruiter)` replaces `@lru_cache(maxsize=128)`.
    A coroutine function needs an `AsyncRecruiter` and a decorator made for coroutine
    functions, such as `async_lru.alru_cache`. A miss calls `on_miss` with the arguments
    of the function, after it has returned.
    """

    def decorate(function: Any) -> Any:
        if inspect.iscoroutinefunction(function):
            return _awaited(function, memoize, AsyncCacheHooks(recruiter, on_miss))
        return _called(function, memoize, CacheHooks(recruiter, on_miss))

    return decorate


def enlist_on_hits(
    function: Cached, recruiter: Recruiter, *, on_miss: OnMiss | None = None
) -> Cached:
    """Wrap a function that is memoized already, so that it enlists after each hit.

    A miss calls `on_miss` with the arguments of the function, after it has returned.
    """
    cached: Any = function
    hooks = CacheHooks(recruiter, on_miss)
    info: Callable[[], Any] | None = getattr(cached, "cache_info", None)
    if info is None or inspect.iscoroutinefunction(cached):
        raise ConfigurationError(
            f"cannot count the hits of {cached!r}, which has no cache_info(): use"
            " @memoized(decorator, recruiter) instead"
            if info is None
            else f"cannot count the hits of the coroutine function {cached!r}: use"
            " @memoized(decorator, recruiter) instead"
        )
    hit, miss = hooks.hit, hooks.miss

    def enlisting(*args: Any, **kwargs: Any) -> Any:
        hits = info().hits
        value = cached(*args, **kwargs)
        if info().hits == hits:
            miss(*args, **kwargs)
        else:
            hit()
        return value

    original = getattr(cached, "__wrapped__", cached)
    wrapper: Any = _alike(enlisting, cached, original)
    return wrapper  # type: ignore[no-any-return]


def _called(
    function: Callable[..., Any], memoize: Callable[[Any], Any], hooks: CacheHooks
) -> Callable[..., Any]:
    last, hit, miss = local(), hooks.hit, hooks.miss

    @wraps(function)
    def computing(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        # After the call: a recursive function has had hits in the meantime.
        last.is_hit = False
        return value

    cached = memoize(computing)

    def enlisting(*args: Any, **kwargs: Any) -> Any:
        last.is_hit = True
        value = cached(*args, **kwargs)
        if last.is_hit:
            hit()
        else:
            miss(*args, **kwargs)
        return value

    return _alike(enlisting, cached, function)


def _awaited(
    function: Callable[..., Awaitable[Any]],
    memoize: Callable[[Any], Any],
    hooks: AsyncCacheHooks,
) -> Callable[..., Any]:
    # A list made by the caller: the decorator may compute in a task of its own, and
    # a context variable set there is not seen here.
    computed: ContextVar[list[bool]] = ContextVar("computed")

    @wraps(function)
    async def computing(*args: Any, **kwargs: Any) -> Any:
        value = await function(*args, **kwargs)
        computed.get([]).append(True)
        return value

    cached = memoize(computing)

    async def enlisting(*args: Any, **kwargs: Any) -> Any:
        computations: list[bool] = []
        token = computed.set(computations)
        try:
            value = await cached(*args, **kwargs)
        finally:
            computed.reset(token)
        if computations:
            await hooks.miss(*args, **kwargs)
        else:
            await hooks.hit()
        return value

    return _alike(enlisting, cached, function)


def _alike(
    wrapper: Callable[..., Any],
    cached: Callable[..., Any],
    function: Callable[..., Any],
) -> Callable[..., Any]:
    """Give a wrapper the name and attributes of the memoized function."""
    update_wrapper(wrapper, function)
    for name in dir(cached):
        if not name.startswith("_") and not hasattr(wrapper, name):
            setattr(wrapper, name, getattr(cached, name))
    return wrapper
