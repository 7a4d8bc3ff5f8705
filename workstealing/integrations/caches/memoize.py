"""Hooks on memoized functions: `functools.lru_cache` and everything like it.

- `memoized` takes the decorator that you use. It knows hits exactly, for it also sees
  whether your function was called, and it enlists when the decorator has returned, so
  outside of any lock that it holds.
- `enlists_on_hits` goes over a function that is memoized already and has `cache_info`,
  and reads its counters. Where another thread is served at the same moment, a miss may
  be taken for a hit.

What they return has the name, signature and attributes (`cache_info`, `cache_clear`, …)
of what it wraps; it returns what that returns, and raises what that raises.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import update_wrapper, wraps
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing.errors import ConfigurationError
from workstealing.integrations.caches.hooks import AsyncHooks, Hooks, OnMiss
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from workstealing.recruiting.aio import AsyncRecruiter

__all__ = ("enlists_on_hits", "memoized")

# Not bound to callables: some decorators take, or return, more than these.
Function = TypeVar("Function")
Cached = TypeVar("Cached")


def memoized(
    recruiter: Recruiter | AsyncRecruiter,
    memoize: Callable[[Function], Cached],
    *,
    on_miss: OnMiss | None = None,
) -> Callable[[Function], Cached]:
    """Decorate a function with *memoize*, and enlist after each hit.

    A coroutine function needs an `AsyncRecruiter` and a decorator made for coroutine
    functions, such as `async_lru.alru_cache`. A miss calls `on_miss` with the arguments
    of the function, after it has returned.
    """

    def decorate(function: Any) -> Any:
        if inspect.iscoroutinefunction(function):
            return _awaited(function, memoize, AsyncHooks(recruiter, on_miss))
        return _called(function, memoize, Hooks(recruiter, on_miss))

    return decorate


def enlists_on_hits(
    recruiter: Recruiter, *, on_miss: OnMiss | None = None
) -> Callable[[Cached], Cached]:
    """Enlist after each hit of a function that is memoized already.

    A miss calls `on_miss` with the arguments of the function, after it has returned.
    """
    hooks = Hooks(recruiter, on_miss)

    def decorate(cached: Any) -> Any:
        info: Callable[[], Any] | None = getattr(cached, "cache_info", None)
        if info is None or inspect.iscoroutinefunction(cached):
            raise ConfigurationError(
                f"the hits of {cached!r} cannot be counted: give its decorator to"
                " memoized(recruiter, decorator)"
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
        return _alike(enlisting, cached, original)

    return decorate


def _called(
    function: Callable[..., Any], memoize: Callable[[Any], Any], hooks: Hooks
) -> Callable[..., Any]:
    last, hit, miss = local(), hooks.hit, hooks.miss

    @wraps(function)
    def computing(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        # After the call: a function that calls itself has had hits meanwhile.
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
    hooks: AsyncHooks,
) -> Callable[..., Any]:
    # A list that the caller made: the decorator may compute in a task of its own, and
    # what is set there is not seen here.
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
    """Let a wrapper look like the memoized function, `cache_info` and all."""
    update_wrapper(wrapper, function)
    for name in dir(cached):
        if not name.startswith("_") and not hasattr(wrapper, name):
            setattr(wrapper, name, getattr(cached, name))
    return wrapper
