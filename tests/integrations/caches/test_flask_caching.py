"""Flask-Caching enlists in real requests, by view, memoized function and template."""

from __future__ import annotations

from itertools import count

import pytest
from flask import Flask, render_template_string
from flask_caching import Cache

from workstealing import Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations.flask_caching import enlist_on_hits
from workstealing.testing import Server

TEMPLATE = "{% cache 60, 'fragment' %}{{ next(numbers) }}{% endcache %}"


@pytest.fixture(params=["SimpleCache", "RedisCache"])
def cache(
    request: pytest.FixtureRequest, redis_server: Server, key_prefix: str
) -> Cache:
    """A cache that does not know its application yet."""
    return Cache(
        config={
            "CACHE_TYPE": request.param,
            "CACHE_REDIS_URL": redis_server.url,
            "CACHE_KEY_PREFIX": key_prefix,
        }
    )


@pytest.fixture
def app(cache: Cache) -> Flask:
    """A site whose answers count how often they were made."""
    app = Flask("site")
    cache.init_app(app)
    numbers = count(1)

    @app.get("/view")
    @cache.cached(timeout=60)
    def view() -> str:
        return f"view {next(numbers)}"

    @cache.memoize(timeout=60)
    def compute(name: str) -> str:
        return f"{name} {next(numbers)}"

    @app.get("/memoized/<name>")
    def memoized(name: str) -> str:
        return compute(name)

    @app.get("/template")
    def template() -> str:
        return render_template_string(TEMPLATE, numbers=numbers, next=next)

    return app


@pytest.mark.parametrize("path", ["/view", "/memoized/ann", "/template"])
def test_a_request_that_is_served_from_the_cache_enlists(
    path: str, app: Flask, cache: Cache, recruiter: Recruiter
) -> None:
    missed: list[str] = []
    assert enlist_on_hits(cache, recruiter, app=app, on_miss=missed.append) is cache
    client = app.test_client()

    first = client.get(path)
    assert recruiter.stats().calls == 0
    second = client.get(path)

    assert first.data == second.data
    assert recruiter.stats().calls == 1
    assert len(missed) == 1


def test_an_application_that_was_not_told_of_its_cache_is_refused(
    recruiter: Recruiter,
) -> None:
    with pytest.raises(ConfigurationError, match="init_app"):
        enlist_on_hits(Cache(), recruiter, app=Flask("site"))
