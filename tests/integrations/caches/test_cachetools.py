"""Caches of cachetools stay what they are, and enlist."""

from __future__ import annotations

from threading import Lock
from typing import Any

import cachetools
import pytest

from workstealing import Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations.cachetools import cached, enlist_on_hits

KINDS = [
    cachetools.Cache,
    cachetools.FIFOCache,
    cachetools.LFUCache,
    cachetools.LRUCache,
    cachetools.RRCache,
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_stays_the_same_object_of_the_same_kind(
    kind: type[Any], recruiter: Recruiter
) -> None:
    cache = kind(2)
    cache["kept"] = 1

    hooked = enlist_on_hits(cache, recruiter)

    assert hooked is cache
    assert isinstance(hooked, kind)
    assert type(hooked).__name__ == kind.__name__
    assert (hooked.maxsize, hooked.currsize, dict(hooked)) == (2, 1, {"kept": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_read_a_cache_is_a_hit(
    kind: type[Any], recruiter: Recruiter
) -> None:
    cache = enlist_on_hits(kind(8), recruiter)
    cache["a"] = 1

    assert cache["a"] == cache.get("a") == cache.setdefault("a", 2) == 1
    assert cache.pop("a") == 1

    assert recruiter.stats().calls == 4


def test_a_cache_evicts_and_expires_as_before(recruiter: Recruiter) -> None:
    now = 0.0
    cache = cachetools.TTLCache[str, int](2, 10, timer=lambda: now)
    missed: list[str] = []
    enlist_on_hits(cache, recruiter, on_miss=missed.append)
    cache.update(a=1, b=2, c=3)

    assert cache.get("a") is None
    now = 11.0
    with pytest.raises(KeyError):
        cache["b"]

    assert missed == ["a", "b"]
    assert recruiter.stats().calls == 0


def test_what_a_cache_makes_of_a_missing_key_is_a_miss(recruiter: Recruiter) -> None:
    class Squares(cachetools.LRUCache[int, int]):
        def __missing__(self, key: int) -> int:
            self[key] = value = key * key
            return value

    missed: list[int] = []
    squares = enlist_on_hits(Squares(8), recruiter, on_miss=missed.append)

    assert squares[3] == 9
    assert recruiter.stats().calls == 0
    assert squares[3] == 9

    assert recruiter.stats().calls == 1
    assert missed == [3]


def test_a_cache_takes_its_hooks_once(recruiter: Recruiter) -> None:
    cache = enlist_on_hits(cachetools.LRUCache[str, int](8), recruiter)

    with pytest.raises(ConfigurationError, match="already"):
        enlist_on_hits(cache, recruiter)


def test_hooks_go_on_a_cache_only(recruiter: Recruiter) -> None:
    with pytest.raises(ConfigurationError, match="not a dict"):
        enlist_on_hits({}, recruiter)  # type: ignore[type-var]


def test_a_slice_runs_when_the_lock_of_the_decorator_is_free() -> None:
    lock, recruiter = Lock(), Recruiter(share=None)
    held: list[bool] = []
    recruiter.install(lambda: held.append(lock.locked()), "look", rate=1.0)
    cache = cachetools.LRUCache[Any, int](8)

    @cached(cache, recruiter, lock=lock)
    def square(number: int) -> int:
        return number * number

    assert [square(3), square(3)] == [9, 9]

    assert held == [False]
    assert square.cache is cache  # type: ignore[attr-defined]
    assert square.cache_lock is lock  # type: ignore[attr-defined]
