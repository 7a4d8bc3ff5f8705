from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.errors import Conflict
from workstealing.jobs import RefreshAhead, XFetch

CHANGES = (
    "get",
    "begin to get",
    "begin slice",
    "step",
    "die",
    "grow old",
    "lease runs out",
    "forget",
)
histories = st.lists(
    st.tuples(st.sampled_from(CHANGES + ("step",) * 3), st.integers(0, 4)),
    min_size=20,
    max_size=80,
)
NAMES = ("a", "b")


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 3))
def test_no_old_value_replaces_a_newer_one_and_nothing_unread_stays(
    redis_client: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    history: list[tuple[str, int]],
    batch: int,
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    numbers = count(1)
    latest = dict.fromkeys(NAMES, 0)
    slices: list[Any] = []
    values = RefreshAhead(
        redis_client,
        key,
        lambda name: str(next(numbers)),
        ttl=100,
        batch=batch,
        xfetch=XFetch(beta=0.0),
    )

    def grow_old(name: str) -> None:
        if redis_client.exists(f"{{{key}}}:value:{name}"):
            redis_client.hincrby(f"{{{key}}}:value:{name}", "expires", -101_000)
        redis_client.zadd(f"{{{key}}}:due", {name: 1}, xx=True)

    def advance(recruit: Any, steps: int = 1) -> None:
        with suppress(Conflict):
            for _ in range(steps):
                if not recruit.ended:
                    recruit.step()
        slices[:] = [each for each in slices if each._flow.gi_frame]

    for change, number in history:
        name = NAMES[number % 2]
        if change == "get":
            values.get(name)
        elif change == "begin to get":
            slices.append(stepped(values._driver, values._steps.get(name)))
            advance(slices[-1], number)
        elif change == "begin slice":
            slices.append(stepped(values._driver, values._steps.refresh()))
            advance(slices[-1], number)
        elif change == "grow old":
            grow_old(name)
        elif change == "lease runs out":
            redis_client.unlink(f"{{{key}}}:lease:{name}")
        elif change == "forget":
            values.forget(name)
        elif slices:
            place = number % len(slices)
            if change == "die":
                del slices[place]
            else:
                advance(slices[place])
        for each in NAMES:
            kept = redis_client.hget(f"{{{key}}}:value:{each}", "value")
            if kept is not None:
                assert int(kept) >= latest[each]
                latest[each] = int(kept)
                assert redis_client.pttl(f"{{{key}}}:value:{each}") > 0

    for each in slices:
        with suppress(Conflict):
            each.finish()
    for _ in range(3):
        for name in NAMES:
            redis_client.unlink(f"{{{key}}}:lease:{name}")
            grow_old(name)
        while values.recruited() is not Duty.DISMISSED:
            pass
    assert values.pending() == 0
