from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing.errors import Conflict
from workstealing.jobs import MissingTTL

CHANGES = ("write", "write with ttl", "persist", "delete", "begin", "step")
histories = st.lists(
    st.tuples(st.sampled_from(CHANGES + ("step",) * 3), st.integers(0, 4)),
    min_size=20,
    max_size=80,
)
LONG = 10_000_000


@pytest.mark.parametrize("nodes", [("single",), ("a:1", "b:2")], ids=["one", "two"])
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 20), dry_run=st.booleans())
def test_no_slice_changes_a_ttl_or_a_value_and_in_the_end_no_key_lacks_one(
    fake_redis: Redis,
    stepped: Callable[..., Any],
    nodes: tuple[str, ...],
    history: list[tuple[str, int]],
    batch: int,
    dry_run: bool,
) -> None:
    prefix = uuid4().hex
    job = MissingTTL(
        fake_redis,
        f"{prefix}-notes",
        f"{prefix}:*",
        ttl=100,
        batch=batch,
        dry_run=dry_run,
    )
    written: dict[str, bool] = {}  # key -> whether it was given a long TTL
    slices: list[Any] = []

    def check() -> None:
        for key, has_ttl in written.items():
            assert fake_redis.get(key) == b"value"
            left = fake_redis.pttl(key)
            if has_ttl:
                assert left > LONG / 2
            elif dry_run:
                assert left == -1
            else:
                assert left == -1 or 0 < left <= 110_000

    for change, number in history:
        key = f"{prefix}:{number}"
        if change == "begin":
            slices.append(stepped(job._driver, job._body.look(), nodes=nodes))
        elif change == "step" and slices:
            with suppress(Conflict):
                slices[number % len(slices)].step()
            slices = [recruit for recruit in slices if recruit._flow.gi_frame]
        elif change.startswith("write"):
            has_ttl = change == "write with ttl"
            fake_redis.set(key, "value", px=LONG if has_ttl else None)
            written[key] = has_ttl
        elif change == "persist" and key in written:
            fake_redis.persist(key)
            written[key] = False
        elif change == "delete":
            fake_redis.unlink(key)
            written.pop(key, None)
        check()

    for recruit in slices:
        with suppress(Conflict):
            recruit.finish()
    for _ in range(4 * len(fake_redis.keys()) // batch + 4):
        job.recruited()
    check()
    if not dry_run:
        assert all(fake_redis.pttl(key) > 0 for key in written)
    fake_redis.unlink(*fake_redis.keys())
