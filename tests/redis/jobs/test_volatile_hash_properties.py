from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.jobs import VolatileHash

FIELDS = ("a", "b", "c")
CHANGES = (
    "set",
    "set natively",
    "touch",
    "touch natively",
    "delete",
    "expire",
    "sweep",
)
histories = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(FIELDS)))


@pytest.mark.usefixtures("field_expiry")
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories)
def test_no_slice_removes_a_living_field_or_leaves_the_index_wrong(
    any_redis: Redis, key_prefix: str, history: list[tuple[str, str]]
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    index = f"{{{key}}}:expires"
    told: list[tuple[bytes, bytes]] = []
    ours = VolatileHash(
        any_redis, key, batch=1, on_expire=lambda *fact: told.append(fact)
    )
    native = VolatileHash(any_redis, key)
    alive: dict[bytes, bytes] = {}
    expired: dict[bytes, bytes] = {}

    for number, (change, name) in enumerate(history):
        field, value = name.encode(), str(number).encode()
        if change.startswith("set"):
            job = ours if change == "set" else native
            assert job.set(field, value, 3600) == (field not in alive)
            alive[field] = value
            expired.pop(field, None)
        elif change.startswith("touch"):
            job = ours if change == "touch" else native
            assert job.touch(field, 3600) == (field in alive)
        elif change == "delete":
            assert ours.delete(field) == (field in alive)
            alive.pop(field, None)
        elif change == "expire":
            if any_redis.zadd(index, {name: 1}, xx=True, ch=True):
                expired[field] = alive.pop(field)
        else:
            told.clear()
            assert (ours.recruited() is Duty.DISMISSED) == (not expired)
            for gone, last in told:
                assert expired.pop(gone) == last
        assert ours.get_all() == native.get_all() == alive
        assert ours.get(field) == alive.get(field)

    while ours.recruited() is not Duty.DISMISSED:
        pass
    assert any_redis.hgetall(key) == alive
    times = any_redis.httl(key, *FIELDS) if alive else [-2] * len(FIELDS)
    by_server = {f.encode() for f, time in zip(FIELDS, times, strict=True) if time > 0}
    assert set(any_redis.zrange(index, 0, -1)) == alive.keys() - by_server
