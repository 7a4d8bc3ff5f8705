"""Regions of dogpile.cache enlist through a proxy."""

from __future__ import annotations

from typing import Any

import pytest
from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE
from dogpile.cache.region import CacheRegion

from workstealing import Recruiter
from workstealing.integrations.dogpile import DogpileEnlistProxy
from workstealing.testing import Server

KINDS = ["dogpile.cache.memory", "dogpile.cache.redis"]


@pytest.fixture
def missed() -> list[str]:
    """The keys that `on_miss` was told."""
    return []


@pytest.fixture(params=KINDS)
def region(
    request: pytest.FixtureRequest,
    redis_server: Server,
    key_prefix: str,
    recruiter: Recruiter,
    missed: list[str],
) -> CacheRegion:
    """A region with a proxy; in Redis it is read as bytes."""
    arguments: dict[str, Any] = {}
    if request.param == "dogpile.cache.redis":
        arguments["url"] = redis_server.url
    return make_region(key_mangler=lambda key: f"{key_prefix}:{key}").configure(
        request.param,
        arguments=arguments,
        wrap=[DogpileEnlistProxy(recruiter, on_miss=missed.append)],
    )


def test_a_decorated_function_enlists_on_hits(
    region: CacheRegion, recruiter: Recruiter
) -> None:
    made: list[int] = []

    @region.cache_on_arguments()
    def square(number: int) -> int:
        made.append(number)
        return number * number

    assert square(3) == 9
    assert recruiter.stats().calls == 0
    assert square(3) == 9

    assert made == [3]
    assert recruiter.stats().calls == 1


def test_several_keys_are_one_hit_and_a_miss_each(
    region: CacheRegion, recruiter: Recruiter, missed: list[str], key_prefix: str
) -> None:
    region.set_multi({"a": 1, "c": 3})

    assert region.get_multi(["e"]) == [NO_VALUE]
    assert recruiter.stats().calls == 0
    assert region.get_multi(["a", "b", "c", "d"]) == [1, NO_VALUE, 3, NO_VALUE]

    assert recruiter.stats().calls == 1
    assert missed == [f"{key_prefix}:{key}" for key in "ebd"]


def test_values_that_are_none_are_hits(
    region: CacheRegion, recruiter: Recruiter
) -> None:
    region.set("a", None)

    assert region.get("a") is None

    assert recruiter.stats().calls == 1
