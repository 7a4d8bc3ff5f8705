from __future__ import annotations

from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.jobs import WindowTrimmer

NODE = 100
QUIETLY = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# What is added with an age of days, or None for a slice.
histories = st.lists(st.none() | st.integers(0, 5))


@QUIETLY
@given(history=histories, batch=st.integers(1, 3))
def test_no_slice_removes_what_is_inside_the_time_window(
    any_redis: Redis, key_prefix: str, history: list[int | None], batch: int
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    now, _ = any_redis.time()
    trimmer = WindowTrimmer(any_redis, key, age=2.5 * 86_400, batch=batch)
    ages: dict[str, int] = {}

    for number, age in enumerate([*history, *[None] * len(history)]):
        if age is not None:
            ages[str(number)] = age
            any_redis.zadd(key, {str(number): now - age * 86_400})
            continue
        garbage = sorted((a for a in ages.values() if a >= 3), reverse=True)
        duty = trimmer.recruited()
        left = {member.decode() for member in any_redis.zrange(key, 0, -1)}
        removed = sorted((ages[m] for m in ages.keys() - left), reverse=True)
        assert removed == garbage[:batch]
        assert (duty is Duty.MORE) == (len(garbage) > batch)
        ages = {member: ages[member] for member in left}

    assert all(age < 3 for age in ages.values())


@QUIETLY
@given(history=histories, length=st.integers(0, 4), batch=st.integers(1, 3))
def test_no_slice_removes_what_is_inside_the_length(
    any_redis: Redis,
    key_prefix: str,
    history: list[int | None],
    length: int,
    batch: int,
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    trimmer = WindowTrimmer(any_redis, key, length=length, batch=batch)
    members: list[tuple[int, str]] = []

    for number, score in enumerate([*history, *[None] * len(history)]):
        if score is not None:
            members.append((score, f"{number:04}"))
            any_redis.zadd(key, {f"{number:04}": score})
            continue
        trimmer.recruited()
        over = min(max(0, len(members) - length), batch)
        members = sorted(members)[over:]
        found = any_redis.zrange(key, 0, -1)
        assert [member.decode() for member in found] == [m for _, m in members]

    assert len(members) <= length


@QUIETLY
@given(
    history=st.lists(st.none() | st.integers(1, 250), max_size=6),
    length=st.integers(0, 300),
    batch=st.integers(1, 300),
)
def test_no_slice_removes_what_is_inside_the_length_of_a_stream(
    any_redis: Redis,
    key_prefix: str,
    history: list[int | None],
    length: int,
    batch: int,
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    trimmer = WindowTrimmer(any_redis, key, length=length, batch=batch)
    added = 0

    for count in history:
        before = any_redis.xlen(key)
        if count is None:
            trimmer.recruited()
            left = any_redis.xlen(key)
            assert min(before, length) <= left
            assert before - left <= max(batch, NODE)
        else:
            pipeline = any_redis.pipeline(transaction=False)
            for number in range(added, added + count):
                pipeline.xadd(key, {"n": number}, id=f"{number + 1}-0")
            pipeline.execute()
            added += count

    while trimmer.recruited() is not Duty.DISMISSED:
        pass
    left = any_redis.xlen(key)
    assert min(added, length) <= left < length + 2 * NODE
    newest = [int(entry.split(b"-")[0]) for entry, _ in any_redis.xrange(key)]
    assert newest == list(range(added - left + 1, added + 1))
