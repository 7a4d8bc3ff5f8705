"""Memoized functions stay what they are, and enlist."""

from __future__ import annotations

import inspect
from functools import cache, lru_cache

import pytest

from workstealing import Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations.memoize import enlist_on_hits, memoized


def test_a_memoized_function_looks_like_itself(recruiter: Recruiter) -> None:
    @memoized(lru_cache(maxsize=8), recruiter)
    def square(number: int) -> int:
        """Multiply a number by itself."""
        return number * number

    assert [square(2), square(2), square(3)] == [4, 4, 9]

    assert square.cache_info() == (1, 2, 8, 2)
    assert square.cache_parameters() == {"maxsize": 8, "typed": False}
    assert square.__wrapped__(4) == 16
    assert square.cache_info().currsize == 2
    square.cache_clear()
    assert square.cache_info().currsize == 0
    assert list(inspect.signature(square).parameters) == ["number"]
    assert square.__doc__ == "Multiply a number by itself."


def test_a_function_that_is_memoized_already_keeps_what_it_knows(
    recruiter: Recruiter,
) -> None:
    @lru_cache(maxsize=8)
    def square(number: int) -> int:
        return number * number

    square(2)
    enlisting = enlist_on_hits(square, recruiter)

    assert enlisting(2) == 4

    assert recruiter.stats().calls == 1
    assert enlisting.cache_info() == square.cache_info() == (1, 1, 8, 1)
    assert enlisting.__wrapped__ is square.__wrapped__


def test_a_function_that_calls_itself_tells_its_hits_from_its_misses(
    recruiter: Recruiter,
) -> None:
    missed: list[int] = []

    @memoized(cache, recruiter, on_miss=missed.append)
    def fibonacci(number: int) -> int:
        return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

    assert fibonacci(10) == 55

    assert sorted(missed) == list(range(11))
    assert recruiter.stats().calls == fibonacci.cache_info().hits == 8


def test_a_memoized_method_knows_its_object(recruiter: Recruiter) -> None:
    class Page:
        def __init__(self, name: str) -> None:
            self.name = name

        @memoized(lru_cache(maxsize=8), recruiter)
        def title(self, suffix: str) -> str:
            return self.name + suffix

    home, help_page = Page("home"), Page("help")

    assert home.title("!") == home.title("!") == "home!"
    assert help_page.title("!") == "help!"

    assert recruiter.stats().calls == 1


def test_what_a_function_raises_is_neither_a_hit_nor_a_miss(
    recruiter: Recruiter,
) -> None:
    missed: list[int] = []

    @memoized(lru_cache(maxsize=8), recruiter, on_miss=missed.append)
    def reciprocal(number: int) -> float:
        return 1 / number

    with pytest.raises(ZeroDivisionError):
        reciprocal(0)

    assert missed == []
    assert recruiter.stats().calls == 0


def test_hits_that_nobody_counts_are_refused(recruiter: Recruiter) -> None:
    with pytest.raises(ConfigurationError, match="memoized"):
        enlist_on_hits(len, recruiter)
