from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.jobs import KeepUntil

NAMES = ("a", "b", "c")
CHANGES = ("set", "add", "extend", "delete", "lapse", "begin", "step", "crash")
histories = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(NAMES)))


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 3))
def test_no_slice_removes_a_living_value_or_leaves_the_index_wrong(
    any_redis: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    history: list[tuple[str, str]],
    batch: int,
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    index = f"{{{key}}}:deadlines"
    kept = KeepUntil(any_redis, key, batch=batch)
    alive: dict[str, bytes] = {}
    slices: list[Any] = []

    for number, (change, name) in enumerate(history):
        value = str(number).encode()
        if change == "set":
            kept.set(name, value, 3600)
            alive[name] = value
        elif change == "add":
            assert kept.add(name, value, 3600) == (name not in alive)
            alive.setdefault(name, value)
        elif change == "extend":
            assert kept.extend(name, 3600) == (name in alive)
        elif change == "delete":
            assert kept.delete(name) == (name in alive)
            alive.pop(name, None)
        elif change == "lapse":
            any_redis.zadd(index, {name: 1}, xx=True)
            alive.pop(name, None)
        elif change == "begin":
            slices.append(stepped(kept._driver, kept._steps.sweep()))
        elif change == "crash":
            slices = slices[1:]
        else:
            for recruit in slices:
                recruit.step()
            slices = [recruit for recruit in slices if not recruit.ended]
        assert {n: v for n in NAMES if (v := kept.get(n)) is not None} == alive

    for recruit in slices:
        recruit.finish()
    while kept.recruited() is not Duty.DISMISSED:
        pass
    assert {name.decode() for name in any_redis.zrange(index, 0, -1)} == alive.keys()
    values = {name: any_redis.get(f"{{{key}}}:value:{name}") for name in NAMES}
    assert values == {name: alive.get(name) for name in NAMES}
