from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.jobs import DeadMembers
from workstealing.testing import wait_until

MEMBERS = (b"a", b"b", b"c")
CHANGES = ("join", "beat", "leave", "fall silent", "begin", "step", "crash")
histories = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(MEMBERS)))


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 3))
def test_no_slice_removes_a_living_member_and_every_death_is_told(
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    history: list[tuple[str, bytes]],
    batch: int,
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    unreported = f"{{{key}}}:unreported"
    told: list[bytes] = []
    registry = DeadMembers(
        any_redis, key, silence=3600, batch=batch, on_dead=told.append
    )
    alive: set[bytes] = set()
    silent: set[bytes] = set()
    owed: dict[bytes, int] = {}  # a dead member -> what was told before it died
    slices: list[Any] = []

    def bury() -> Any:
        """Begin a slice; what it buries must have been silent."""
        pass_a_moment(any_redis)
        recruit = stepped(registry._driver, registry._steps.remove_dead())
        recruit.step()
        left = set(any_redis.zrange(key, 0, -1))
        assert alive <= left
        buried = silent - left
        assert len(buried) == min(len(silent), batch) or any_redis.exists(unreported)
        owed.update(dict.fromkeys(buried, len(told)))
        silent.difference_update(buried)
        return recruit

    for change, member in history:
        if change == "join":
            assert registry.join(member) == (member not in alive)
            alive.add(member)
            silent.discard(member)
        elif change == "beat":
            assert registry.beat(member) == (member in alive | silent)
            if member in silent:
                silent.remove(member)
                alive.add(member)
        elif change == "leave":
            assert registry.leave(member) == (member in alive | silent)
            alive.discard(member)
            silent.discard(member)
        elif change == "fall silent":
            if any_redis.zadd(key, {member: 1}, xx=True, ch=True):
                alive.remove(member)
                silent.add(member)
        elif change == "begin":
            slices.append(bury())
        elif change == "crash":
            slices = slices[1:]
        else:
            for recruit in slices:
                if not recruit.ended:
                    recruit.step()
        assert set(registry.members()) == alive
        assert set(told) <= owed.keys()

    for recruit in slices:
        recruit.finish()
    while silent or any_redis.exists(unreported):
        claims = any_redis.zrange(unreported, 0, -1)
        if claims:
            any_redis.zadd(unreported, dict.fromkeys(claims, 1))
        bury().finish()
    assert registry.recruited() is Duty.DISMISSED
    assert all(member in told[before:] for member, before in owed.items())
    assert set(any_redis.zrange(key, 0, -1)) == alive


def pass_a_moment(client: Redis) -> None:
    """Let a millisecond go by on the server, as nobody can die twice within one."""
    before = milliseconds(client)
    wait_until(lambda: milliseconds(client) > before, 5, "the server's clock to move")


def milliseconds(client: Redis) -> int:
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000
