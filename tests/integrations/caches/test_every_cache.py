"""What holds for each cache that is not awaited: a hit enlists, a miss is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workstealing import AsyncRecruiter, Recruiter
from workstealing.errors import ConfigurationError

# How many functions a hit calls more, `enlist` among them, if it is dismissed.
MOST_CALLS_MORE = {
    "cachetools": 5,
    "cachetools.cached": 2,
    "dogpile": 3,
    "dogpile on redis": 3,
    "flask-caching": 3,
    "flask-caching on redis": 3,
    "memoized": 2,
    "memoized already": 8,
    "redis": 7,
}
EVERY_CACHE = pytest.mark.parametrize("begin", sorted(MOST_CALLS_MORE), indirect=True)


@EVERY_CACHE
def test_a_hit_enlists_once(begin: Any, recruiter: Recruiter, key_prefix: str) -> None:
    host = begin(recruiter)
    host.put(key_prefix)
    before = recruiter.stats().calls

    assert host.read(key_prefix) == f"value of {key_prefix}"

    assert recruiter.stats().calls == before + 1


@EVERY_CACHE
def test_a_miss_is_told_once_and_does_not_enlist(
    begin: Any, recruiter: Recruiter, key_prefix: str
) -> None:
    missed: list[str] = []
    host = begin(recruiter, on_miss=missed.append)

    host.read(key_prefix)

    [name] = missed
    assert name.endswith(key_prefix)  # a cache may have a prefix of its own
    assert recruiter.stats().calls == 0


@EVERY_CACHE
def test_a_hit_is_not_told_as_a_miss(
    begin: Any, recruiter: Recruiter, key_prefix: str
) -> None:
    missed: list[str] = []
    host = begin(recruiter, on_miss=missed.append)
    host.put(key_prefix)
    missed.clear()

    host.read(key_prefix)

    assert missed == []


@EVERY_CACHE
def test_nothing_that_a_hook_or_a_job_raises_is_seen(
    begin: Any, key_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("not today")

    recruiter = Recruiter(share=None)
    recruiter.install(fail, "failing", rate=1.0)
    plain, hooked = begin(None), begin(recruiter, on_miss=fail)

    seen = []
    for host in (plain, hooked):
        name = f"{key_prefix}-{host is plain}"
        first = host.read(name)
        host.put(name)
        seen.append((str(first).replace(name, ""), host.read(name).replace(name, "")))

    assert seen[0] == seen[1]
    assert recruiter.stats().jobs["failing"].last_error == "RuntimeError('not today')"
    assert "on_miss failed" in caplog.text


@EVERY_CACHE
def test_a_hook_may_read_the_cache_that_it_hangs_on(
    begin: Any, recruiter: Recruiter, key_prefix: str
) -> None:
    missed: list[str] = []

    def look_elsewhere(name: str) -> None:
        missed.append(name)
        host.read(f"{key_prefix}-other")

    host = begin(recruiter, on_miss=look_elsewhere)
    host.read(key_prefix)

    assert len(missed) == 1


@EVERY_CACHE
def test_a_dismissed_hit_costs_a_few_calls_more(
    begin: Any,
    key_prefix: str,
    calls_of: Callable[[Callable[[], object]], int],
    request: pytest.FixtureRequest,
) -> None:
    recruiter = Recruiter()
    recruiter.install(lambda: None, "rare", rate=1e-9)
    cost = []
    for host in (begin(None), begin(recruiter)):
        host.put(key_prefix)
        host.read(key_prefix)  # the first draw, the first connection
        host.read(key_prefix)
        # What a client of Redis does besides, now and then, is not ours.
        reads = [calls_of(lambda read=host.read: read(key_prefix)) for _ in range(5)]
        cost.append(min(reads))

    cache = request.node.callspec.params["begin"]
    assert 1 <= cost[1] - cost[0] <= MOST_CALLS_MORE[cache]
    assert recruiter.stats().jobs["rare"].drawn == 0


@EVERY_CACHE
def test_a_recruiter_that_must_be_awaited_is_refused(
    begin: Any, async_recruiter: AsyncRecruiter
) -> None:
    with pytest.raises(ConfigurationError, match="not awaited"):
        begin(async_recruiter).read("name")


@EVERY_CACHE
def test_a_hook_must_be_a_function(begin: Any, recruiter: Recruiter) -> None:
    with pytest.raises(ConfigurationError, match="on_miss"):
        begin(recruiter, on_miss="refresh").read("name")
