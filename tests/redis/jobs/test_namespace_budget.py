"""On the embedded server only: fakeredis has neither OBJECT nor MEMORY USAGE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import NoScriptError

from workstealing import Duty
from workstealing.errors import ConfigurationError, Conflict
from workstealing.jobs import AsyncNamespaceBudget, NamespaceBudget
from workstealing.testing import Server


@pytest.fixture(scope="module")
def lfu_server() -> Iterator[Server]:
    with Server(maxmemory_policy="allkeys-lfu") as server:
        yield server


@pytest.fixture
def quiet_server() -> Iterator[Server]:
    """A server without other keys, which one page of a scan shows whole."""
    with Server() as server:
        yield server


def fill(client: Redis, prefix: str, idle: dict[str, int], size: int = 10) -> list[str]:
    """Write keys that were last used so many seconds ago."""
    names = []
    for name, seconds in idle.items():
        key = f"{prefix}:{name}"
        client.set(key, "x" * size)
        client.restore(key, 0, client.dump(key), replace=True, idletime=seconds)
        names.append(key)
    return names


def budget(client: Redis, prefix: str, **limits: Any) -> NamespaceBudget:
    return NamespaceBudget(client, f"{prefix}-budget", f"{prefix}:", **limits)


def numbered(count: int) -> dict[str, int]:
    return {str(n): n for n in range(count)}


def left(client: Redis, prefix: str) -> set[str]:
    return {key.decode().split(":")[1] for key in client.keys(f"{prefix}:*")}


def settle(job: NamespaceBudget, slices: int = 60) -> None:
    for _ in range(slices):
        job.recruited()


def test_the_longest_idle_keys_are_evicted_until_the_budget_holds(
    redis_client: Redis, key_prefix: str
) -> None:
    job = budget(redis_client, key_prefix, most_keys=20)
    assert job.add(*fill(redis_client, key_prefix, numbered(30))) == 30

    duties = [job.recruited() for _ in range(2)]

    assert duties == [Duty.MORE, Duty.RECRUITED]
    assert left(redis_client, key_prefix) == set(map(str, range(20)))
    assert job.usage().keys == 20


def test_nothing_is_evicted_within_budget(redis_client: Redis, key_prefix: str) -> None:
    job = budget(redis_client, key_prefix, most_keys=30, most_bytes=1_000_000)
    job.add(*fill(redis_client, key_prefix, numbered(30)))

    settle(job)

    assert len(left(redis_client, key_prefix)) == 30


def test_a_budget_of_bytes_holds(redis_client: Redis, key_prefix: str) -> None:
    job = budget(redis_client, key_prefix, most_bytes=20_000)
    job.add(*fill(redis_client, key_prefix, numbered(40), size=1000))

    settle(job)

    taken = sum(
        redis_client.memory_usage(k) for k in redis_client.keys(f"{key_prefix}:*")
    )
    assert 15_000 < taken <= 20_000
    assert job.usage().bytes == taken


def test_under_an_lfu_policy_the_least_frequently_used_are_evicted(
    lfu_server: Server, key_prefix: str
) -> None:
    with Redis.from_url(lfu_server.url) as client:
        keys = [f"{key_prefix}:{n}" for n in range(10)]
        for n, key in enumerate(keys):
            client.set(key, "")
            client.restore(key, 0, client.dump(key), replace=True, frequency=100 + n)
        job = budget(client, key_prefix, most_keys=5)
        job.add(*keys)

        settle(job)

        assert left(client, key_prefix) == {"5", "6", "7", "8", "9"}


def test_members_whose_key_is_gone_are_dropped_before_anything_is_evicted(
    redis_client: Redis, key_prefix: str
) -> None:
    job = budget(redis_client, key_prefix, most_keys=5)
    keys = fill(redis_client, key_prefix, numbered(10))
    job.add(*keys)
    redis_client.unlink(*keys[:5])

    settle(job)

    assert left(redis_client, key_prefix) == {"5", "6", "7", "8", "9"}
    assert job.usage().keys == 5


def test_keys_that_nobody_added_are_found_and_counted(
    redis_client: Redis, key_prefix: str
) -> None:
    job = budget(redis_client, key_prefix, most_keys=100)
    fill(redis_client, key_prefix, numbered(40))

    for _ in range(2000):
        job.recruited()
        if job.usage().keys == 40:
            break

    assert job.usage().keys == 40


def test_the_index_does_not_count_or_evict_itself(
    redis_client: Redis, key_prefix: str
) -> None:
    job = NamespaceBudget(
        redis_client, f"{{{key_prefix}}}", f"{{{key_prefix}}}:", most_keys=0
    )
    redis_client.set(f"{{{key_prefix}}}:mine", "")
    job.add(f"{{{key_prefix}}}:mine")

    settle(job)

    assert job.usage().keys == 0
    assert not redis_client.exists(f"{{{key_prefix}}}:mine")
    assert redis_client.exists(f"{{{key_prefix}}}:state")


def test_a_prefix_is_taken_literally(redis_client: Redis, key_prefix: str) -> None:
    redis_client.set(f"{key_prefix}[x]:in", "")
    redis_client.set(f"{key_prefix}x:out", "")
    job = NamespaceBudget(
        redis_client, f"{key_prefix}-budget", f"{key_prefix}[x]:", most_keys=0
    )

    for _ in range(2000):
        job.recruited()
        if not redis_client.exists(f"{key_prefix}[x]:in"):
            break

    assert not redis_client.exists(f"{key_prefix}[x]:in")
    assert redis_client.exists(f"{key_prefix}x:out")


def test_a_key_that_is_used_after_the_look_is_spared(
    redis_client: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    job = budget(redis_client, key_prefix, most_keys=1)
    job.add(*fill(redis_client, key_prefix, {"cold": 100, "warm": 50}))
    eviction = stepped(job._driver, job._steps.enforce())
    for _ in range(4):
        eviction.step()  # the turn, the nodes, the look, the note
    assert job.touch(f"{key_prefix}:cold", f"{key_prefix}:none") == 1

    eviction.finish()

    assert left(redis_client, key_prefix) == {"cold", "warm"}
    settle(job)
    assert left(redis_client, key_prefix) == {"cold"}


def test_a_key_that_is_added_again_after_its_eviction_stays_in_the_index(
    redis_client: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    job = budget(redis_client, key_prefix, most_keys=1)
    job.add(*fill(redis_client, key_prefix, {"cold": 100, "warm": 50}))
    eviction = stepped(job._driver, job._steps.enforce())
    while redis_client.exists(f"{key_prefix}:cold"):
        eviction.step()
    job.add(*fill(redis_client, key_prefix, {"cold": 0}))

    eviction.finish()

    assert job.usage().keys == 2


def test_an_entry_of_the_same_millisecond_as_the_look_is_dropped_with_its_key(
    redis_client: Redis, key_prefix: str
) -> None:
    job = budget(redis_client, key_prefix, most_keys=1)
    ahead = redis_client.time()[0] * 1000 + 3_600_000
    redis_client.hset(f"{{{key_prefix}-budget}}:state", "stamp", ahead)
    job.add(*fill(redis_client, key_prefix, {"cold": 100, "warm": 50}))

    job.recruited()

    assert left(redis_client, key_prefix) == {"warm"}
    assert job.usage().keys == 1


def scanning(job: NamespaceBudget, stepped: Callable[..., Any]) -> Any:
    """Begin a slice that has read a page with all keys."""
    scan = stepped(job._driver, job._steps.enforce())
    for _ in range(4):
        scan.step()  # the turn, the nodes, the place, the page
    return scan


def test_a_scan_does_not_bring_back_what_was_evicted_after_its_page(
    quiet_server: Server, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    with Redis.from_url(quiet_server.url) as client:
        roomy = budget(client, key_prefix, most_keys=9)
        roomy.add(*fill(client, key_prefix, {"cold": 100, "warm": 50}))
        scan = scanning(roomy, stepped)
        budget(client, key_prefix, most_keys=1).recruited()

        scan.finish()

        assert left(client, key_prefix) == {"warm"}
        assert roomy.usage().keys == 1


def test_a_scan_does_not_renew_an_entry_whose_key_is_being_evicted(
    quiet_server: Server, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    with Redis.from_url(quiet_server.url) as client:
        roomy = budget(client, key_prefix, most_keys=9)
        roomy.add(*fill(client, key_prefix, {"cold": 100, "warm": 50}))
        scan = scanning(roomy, stepped)
        tight = budget(client, key_prefix, most_keys=1)
        eviction = stepped(tight._driver, tight._steps.enforce())
        while client.exists(f"{key_prefix}:cold"):
            eviction.step()
        scan.finish()

        eviction.finish()

        assert roomy.usage().keys == 1


def test_a_recruit_that_dies_while_it_evicts_leaves_an_index_that_heals(
    redis_client: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    job = budget(redis_client, key_prefix, most_keys=2, most_bytes=10_000)
    job.add(*fill(redis_client, key_prefix, {"a": 9, "b": 8, "c": 7}))
    dying = budget(redis_client, key_prefix, most_keys=2, most_bytes=10_000)
    died = stepped(dying._driver, dying._steps.enforce())
    while redis_client.exists(f"{key_prefix}:a"):
        died.step()
    del died
    with pytest.raises(Conflict):
        job.recruited()
    redis_client.unlink(f"{{{key_prefix}-budget}}:lease")  # it runs out

    settle(job)

    assert left(redis_client, key_prefix) == {"b", "c"}
    assert job.usage().keys == 2


def test_the_lease_has_an_end_and_is_given_back(
    redis_client: Redis, key_prefix: str, stepped: Callable[..., Any]
) -> None:
    lease = f"{{{key_prefix}-budget}}:lease"
    job = budget(redis_client, key_prefix, most_keys=0)
    job.add(*fill(redis_client, key_prefix, {"a": 1}))
    eviction = stepped(job._driver, job._steps.enforce())

    eviction.step()
    assert 0 < redis_client.pttl(lease) <= 10_000
    eviction.finish()
    assert not redis_client.exists(lease)


class OlderServer(Redis):
    """Refuses what Redis 6.2 and 7.0 refuse: a number that Lua writes as -0."""

    _FIRST_LINE = """
        local server = redis
        local function called(name)
          return function(...)
            for _, part in ipairs({...}) do
              assert(type(part) ~= 'number' or string.format('%.17g', part) ~= '-0',
                'ERR value is not an integer or out of range')
            end
            return server[name](...)
          end
        end
        local redis = {call = called('call'), pcall = called('pcall')}
    """.replace("\n", " ")

    def execute_command(self, *parts: Any, **options: Any) -> Any:
        if parts[0] == "EVALSHA":
            raise NoScriptError
        if parts[0] == "EVAL":
            parts = ("EVAL", self._FIRST_LINE + parts[1], *parts[2:])
        return super().execute_command(*parts, **options)


def test_a_key_that_was_never_measured_is_evicted_on_older_servers_too(
    redis_server: Server, key_prefix: str
) -> None:
    with OlderServer.from_url(redis_server.url) as client:
        job = budget(client, key_prefix, most_keys=3)
        job.add(*fill(client, key_prefix, numbered(5)))

        settle(job)

        assert left(client, key_prefix) == {"0", "1", "2"}
        assert job.usage().keys == 3


def test_wrong_arguments_are_refused(redis_client: Redis) -> None:
    for wrong in (
        {},
        {"most_keys": -1},
        {"most_keys": 1, "batch": 0},
        {"most_keys": "20"},
        {"most_keys": 20.5},
        {"most_keys": 1, "most_bytes": True},
    ):
        with pytest.raises(ConfigurationError):
            budget(redis_client, "prefix", **wrong)
    with pytest.raises(ConfigurationError):
        NamespaceBudget(redis_client, "key", "", most_keys=1)


def test_a_budget_may_be_of_many_gigabytes(redis_client: Redis) -> None:
    assert budget(redis_client, "prefix", most_bytes=64 * 1024**3).usage().keys == 0


def test_two_recruits_at_once_do_not_evict_too_much(
    redis_server: Server, key_prefix: str, both_at_once: Callable[..., list[Any]]
) -> None:
    with (
        Redis.from_url(redis_server.url) as one,
        Redis.from_url(redis_server.url) as two,
    ):
        jobs = [budget(client, key_prefix, most_keys=30) for client in (one, two)]
        jobs[0].add(*fill(one, key_prefix, numbered(100)))

        def work(job: NamespaceBudget) -> None:
            for _ in range(60):
                try:
                    job.recruited()
                except Conflict:
                    continue

        both_at_once(lambda: work(jobs[0]), lambda: work(jobs[1]))

        assert len(left(one, key_prefix)) == 30
        assert jobs[0].usage().keys == 30


async def test_the_asyncio_face_does_the_same(
    async_redis_client: AsyncRedis, redis_client: Redis, key_prefix: str
) -> None:
    job = AsyncNamespaceBudget(
        async_redis_client, f"{key_prefix}-budget", f"{key_prefix}:", most_keys=20
    )
    keys = fill(redis_client, key_prefix, numbered(30))
    assert await job.add(*keys) == 30
    assert await job.touch(keys[29]) == 1

    while await job.recruited() is Duty.MORE:
        pass

    assert left(redis_client, key_prefix) == {*map(str, range(19)), "29"}
    assert (await job.usage()).keys == 20
