from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.errors import HookFailed
from workstealing.jobs import PendingReclaim

CHANGES = ("deliver", "delete", "silence", "begin", "die", "handler fails")
histories = st.lists(
    st.tuples(st.sampled_from(CHANGES + ("step",) * 3), st.integers(0, 4)),
    min_size=20,
    max_size=80,
)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 5), deliveries=st.integers(1, 3))
def test_every_entry_is_pending_handled_or_one_dead_letter(
    redis_client: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    history: list[tuple[str, int]],
    batch: int,
    deliveries: int,
) -> None:
    stream = f"{key_prefix}:{uuid4().hex}"
    redis_client.xgroup_create(stream, "group", mkstream=True)
    delivered: set[str] = set()
    deleted: set[str] = set()
    handled: set[str] = set()
    slices: list[Any] = []
    failures = 0

    def handle(entry_id: str, fields: dict[Any, Any]) -> None:
        nonlocal failures
        assert fields == {b"field": b"value"}
        if failures:
            failures -= 1
            raise LookupError("not now")
        handled.add(entry_id)

    def pending() -> set[str]:
        entries = redis_client.xpending_range(stream, "group", "-", "+", 100)
        return {entry["message_id"].decode() for entry in entries}

    def letters() -> list[str]:
        dead = redis_client.xrange(f"{{{stream}}}:dead:group")
        return [fields[b"ws-origin"].decode() for _, fields in dead]

    def silence() -> None:
        ids = list(pending())
        if ids:
            redis_client.xclaim(
                stream, "group", "lost", 0, ids, idle=61_000, justid=True
            )

    job = PendingReclaim(
        redis_client,
        stream,
        "group",
        handle,
        idle=60,
        max_deliveries=deliveries,
        batch=batch,
    )

    def advance(recruit: Any, steps: int = 1) -> None:
        with suppress(HookFailed):
            for _ in range(steps):
                if not recruit.ended:
                    recruit.step()
        slices[:] = [each for each in slices if each._flow.gi_frame]

    for change, number in history:
        if change == "deliver":
            redis_client.xadd(stream, {"field": "value"})
            ((_, [(entry_id, _)]),) = redis_client.xreadgroup(
                "group", "lost", {stream: ">"}
            )
            delivered.add(entry_id.decode())
        elif change == "delete" and delivered:
            entry_id = sorted(delivered)[number % len(delivered)]
            redis_client.xdel(stream, entry_id)
            deleted.add(entry_id)
        elif change == "silence":
            silence()
        elif change == "handler fails":
            failures = number
        elif change == "begin":
            silence()
            slices.append(stepped(job._driver, job._steps.reclaim()))
            advance(slices[-1])  # it has claimed
        elif slices:
            place = number % len(slices)
            if change == "die":
                del slices[place]
            else:
                advance(slices[place])
        dead = letters()
        assert len(dead) == len(set(dead))
        assert not set(dead) & pending()
        assert delivered <= pending() | handled | set(dead) | deleted

    failures = 0
    for each in slices:
        with suppress(HookFailed):
            each.finish()
    for _ in range(20):
        silence()
        while job.recruited() is Duty.MORE:
            pass
    assert pending() == set()
