from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing.jobs import QueueTracker

CHANGES = (
    "insert",
    "delete",
    "insert quietly",
    "delete quietly",
    "add next",
    "ask",
    "step",
)
histories = st.lists(
    st.tuples(st.sampled_from(CHANGES + ("step",) * 3), st.integers(0, 2)),
    min_size=20,
    max_size=80,
)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 3))
def test_no_slice_loses_an_added_row_and_in_the_end_the_set_is_the_table(
    redis_client: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    history: list[tuple[str, int]],
    batch: int,
) -> None:
    rows: set[int] = set()
    added: set[str] = set()  # after their row was written, which is still there
    slices: list[Any] = []
    key = f"{key_prefix}:{uuid4().hex}"
    tracker = QueueTracker(
        redis_client,
        key,
        next_rows=lambda after, count: sorted(
            row for row in rows if after is None or row > int(after)
        )[:count],
        still_there=lambda ids: [number for number in ids if int(number) in rows],
        batch=batch,
    )

    for change, row in history:
        if change in ("add next", "ask"):
            # Which of the two it will be is a matter of turns.
            redis_client.hset(f"{{{key}}}:tracking", "turn", int(change == "ask"))
            recruit = stepped(tracker._driver, tracker._steps.follow())
            slices.append(recruit)
            for _ in range(row):
                recruit.step()
        elif change == "step" and slices:
            slices[row % len(slices)].step()
            slices = [recruit for recruit in slices if not recruit.ended]
        elif change.startswith("insert"):
            rows.add(row)
            if change == "insert":
                tracker.add(row)
                added.add(str(row))
        elif change.startswith("delete"):
            rows.discard(row)
            added.discard(str(row))
            if change == "delete":
                tracker.remove(row)
        assert added <= tracker.ids()

    for recruit in slices:
        recruit.finish()
    for _ in range(30):
        tracker.recruited()
    assert tracker.ids() == set(map(str, rows))
