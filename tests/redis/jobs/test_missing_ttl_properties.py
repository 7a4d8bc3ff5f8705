from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing.errors import Conflict
from workstealing.jobs import MissingTTL
from workstealing.testing import Server

CHANGES = ("write", "write with ttl", "persist", "delete", "begin", "step")
histories = st.lists(
    st.tuples(st.sampled_from(CHANGES + ("step",) * 3), st.integers(0, 4)),
    min_size=20,
    max_size=80,
)
LONG = 10_000_000


@pytest.fixture(scope="module")
def quiet_client() -> Iterator[Redis]:
    """A client of a server with no other keys: a scan soon comes round."""
    with Server() as server, Redis.from_url(server.url) as client:
        yield client


@pytest.mark.parametrize("nodes", [("single",), ("a:1", "b:2")], ids=["one", "two"])
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 20), dry_run=st.booleans())
def test_no_slice_changes_a_ttl_or_a_value_and_in_the_end_no_key_lacks_one(
    quiet_client: Redis,
    stepped: Callable[..., Any],
    nodes: tuple[str, ...],
    history: list[tuple[str, int]],
    batch: int,
    dry_run: bool,
) -> None:
    prefix = uuid4().hex
    job = MissingTTL(
        quiet_client,
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
            assert quiet_client.get(key) == b"value"
            left = quiet_client.pttl(key)
            if has_ttl:
                assert left > LONG / 2
            elif dry_run:
                assert left == -1
            else:
                assert left == -1 or 0 < left <= 110_000

    def advance(recruit: Any, steps: int = 1) -> None:
        with suppress(Conflict):
            for _ in range(steps):
                if not recruit.ended:
                    recruit.step()
        slices[:] = [each for each in slices if each._flow.gi_frame]

    for change, number in history:
        key = f"{prefix}:{number}"
        if change == "begin":
            slices.append(stepped(job._driver, job._steps.scan(), nodes=nodes))
            advance(slices[-1], number)
        elif change == "step" and slices:
            advance(slices[number % len(slices)])
        elif change.startswith("write"):
            has_ttl = change == "write with ttl"
            quiet_client.set(key, "value", px=LONG if has_ttl else None)
            written[key] = has_ttl
        elif change == "persist" and key in written:
            quiet_client.persist(key)
            written[key] = False
        elif change == "delete":
            quiet_client.unlink(key)
            written.pop(key, None)
        check()

    for recruit in slices:
        with suppress(Conflict):
            recruit.finish()
    for _ in range(4 * len(quiet_client.keys()) // batch + 4):
        job.recruited()
    check()
    if not dry_run:
        assert all(quiet_client.pttl(key) > 0 for key in written)
    quiet_client.unlink(*quiet_client.keys())
