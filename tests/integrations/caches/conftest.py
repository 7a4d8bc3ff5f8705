"""What stories about caches share: a recruiter that always recruits, and every host."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest

from workstealing import AsyncRecruiter, Recruiter
from workstealing.testing import Server

Begin = Callable[..., "Host"]


@dataclass(frozen=True, slots=True)
class Host:
    """A cache as an application uses it."""

    read: Callable[[str], Any]
    """Returns the value of a name; None, or one that is computed, if there is none."""
    put: Callable[[str], object]
    """Sees to it that the next read of a name is a hit."""


@pytest.fixture
def recruiter() -> Recruiter:
    """Recruits every caller for a job that does nothing."""
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: None, "nothing", rate=1.0)
    return recruiter


@pytest.fixture
def async_recruiter() -> AsyncRecruiter:
    """Recruits every caller for a job that does nothing."""
    recruiter = AsyncRecruiter(share=None)

    @recruiter.job(rate=1.0)
    async def nothing() -> None:
        return None

    return recruiter


@pytest.fixture
def calls_of() -> Callable[[Callable[[], object]], int]:
    """Count the functions that are called, of Python and of C, in doing something."""

    def calls_of(action: Callable[[], object]) -> int:
        count = 0

        def note(_: object, event: str, __: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        with warnings.catch_warnings():
            # What it tidies up is not ours: other tests may have left it.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        gc.disable()
        sys.setprofile(note)
        try:
            action()
        finally:
            sys.setprofile(None)
            gc.enable()
        return count - 2  # `action` itself, and the last `setprofile`

    return calls_of


@pytest.fixture
def begin(
    request: pytest.FixtureRequest, redis_server: Server, key_prefix: str
) -> Iterator[Begin]:
    """Make the cache that the test asks for, with hooks or, for None, without."""
    with ExitStack() as stack:

        def begin(recruiter: Recruiter | None, **hooks: Any) -> Host:
            make = HOSTS[request.param]
            return make(recruiter, hooks, redis_server.url, key_prefix, stack)

        yield begin


def _cachetools(
    recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
) -> Host:
    from cachetools import LRUCache

    from workstealing.integrations.cachetools import enlist_on_hits

    cache: LRUCache[str, str] = LRUCache(100)
    if recruiter:
        cache = enlist_on_hits(cache, recruiter, **hooks)
    return Host(cache.get, lambda name: cache.update({name: f"value of {name}"}))


def _cachetools_cached(
    recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
) -> Host:
    import cachetools

    from workstealing.integrations.cachetools import cached

    cache: cachetools.TTLCache[Any, Any] = cachetools.TTLCache(100, 60)
    decorate = cachetools.cached(cache)
    if recruiter:
        decorate = cached(cache, recruiter, **hooks)
    compute = decorate(_compute)
    return Host(compute, lambda name: cache.update({_key(name): f"value of {name}"}))


def _flask_caching(kind: str) -> Any:
    def make(
        recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
    ) -> Host:
        from flask import Flask
        from flask_caching import Cache

        from workstealing.integrations.flask_caching import enlist_on_hits

        app = Flask(prefix)
        config = {"CACHE_TYPE": kind, "CACHE_KEY_PREFIX": prefix}
        if kind == "RedisCache":
            config["CACHE_REDIS_URL"] = url
        cache = Cache(app, config=config)
        if recruiter:
            enlist_on_hits(cache, recruiter, app=app, **hooks)

        def read(name: str) -> Any:
            with app.app_context():
                return cache.get(name)

        def put(name: str) -> None:
            with app.app_context():
                cache.set(name, f"value of {name}")

        return Host(read, put)

    return make


def _dogpile(kind: str) -> Any:
    def make(
        recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
    ) -> Host:
        from dogpile.cache import make_region

        from workstealing.integrations.dogpile import DogpileEnlistProxy

        wrap = [DogpileEnlistProxy(recruiter, **hooks)] if recruiter else []
        arguments = {"url": url} if kind == "dogpile.cache.redis" else {}
        region = make_region(key_mangler=lambda name: name).configure(
            kind, arguments=arguments, wrap=wrap
        )

        def read(name: str) -> Any:
            return region.get(name) or None  # a NoValue is false

        return Host(read, lambda name: region.set(name, f"value of {name}"))

    return make


def _redis(
    recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
) -> Host:
    from redis import Redis

    from workstealing.integrations.redis_client import enlist_on_hits

    client = Redis.from_url(url, decode_responses=True)
    stack.callback(client.close)
    if recruiter:
        enlist_on_hits(client, recruiter, **hooks)
    return Host(client.get, lambda name: client.set(name, f"value of {name}"))


def _memoized(
    recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
) -> Host:
    from workstealing.integrations.memoize import memoized

    decorate: Any = lru_cache(maxsize=100)
    if recruiter:
        decorate = memoized(decorate, recruiter, **hooks)
    compute = decorate(_compute)
    return Host(compute, compute)


def _memoized_already(
    recruiter: Recruiter | None, hooks: Any, url: str, prefix: str, stack: ExitStack
) -> Host:
    from workstealing.integrations.memoize import enlist_on_hits

    compute: Any = lru_cache(maxsize=100)(_compute)
    if recruiter:
        compute = enlist_on_hits(compute, recruiter, **hooks)
    return Host(compute, compute)


def _compute(name: str) -> str:
    return f"value of {name}"


def _key(name: str) -> Any:
    from cachetools.keys import hashkey

    return hashkey(name)


HOSTS: dict[str, Any] = {
    "cachetools": _cachetools,
    "cachetools.cached": _cachetools_cached,
    "flask-caching": _flask_caching("SimpleCache"),
    "flask-caching on redis": _flask_caching("RedisCache"),
    "dogpile": _dogpile("dogpile.cache.memory"),
    "dogpile on redis": _dogpile("dogpile.cache.redis"),
    "redis": _redis,
    "memoized": _memoized,
    "memoized already": _memoized_already,
}
