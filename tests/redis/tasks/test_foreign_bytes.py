"""Whatever others have written into a queue, workers, callers and inspectors go on."""

from __future__ import annotations

import json
from contextlib import suppress
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Inspector, State, TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import WorkStealingError
from workstealing.tasks.envelope import Envelope

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.none() | st.integers(-(2**70), 2**70) | st.floats() | TEXT
FIELDS = [*Envelope.__struct_fields__, "sig"]
OF_ENVELOPES = st.fixed_dictionaries(
    {"v": st.just(1) | VALUES, "name": st.just("one") | VALUES},
    optional={field: VALUES for field in FIELDS if field not in ("v", "name")},
)
STORED = st.binary(max_size=60) | OF_ENVELOPES.map(
    lambda body: json.dumps(body).encode()
)
FOREIGN = settings.get_profile("foreign")


@pytest.mark.foreign
@FOREIGN
@given(st.lists(STORED, min_size=1, max_size=5))
def test_any_envelopes_are_run_parked_or_given_up_and_others_are_done(
    redis_client: Redis, key_prefix: str, stored: list[bytes]
) -> None:
    queue = TaskQueue(key_prefix, redis_client, run=uuid4().hex)

    @queue.task(name="one")
    def one(number: int = 0) -> int:
        return number

    keys, inspector = internals_of(queue).keys, Inspector(queue)
    names = [f"odd{number}" for number in range(len(stored))]
    for name, envelope in zip(names, stored, strict=True):
        redis_client.hset(keys.task, name, envelope)
        redis_client.rpush(keys.inboxes[1], name)
    sound = one.submit(7)
    inspector.ls("inbox")
    inspector.tree()

    Worker(queue).run(until_empty=True)

    assert sound.result(timeout=10) == 7
    for name in names:
        state = queue.handle(name).state().state
        assert state not in (State.WAITING, State.ASSIGNED, State.RUNNING)
        assert inspector.why(name)
        inspector.cat(name)
    inspector.stat()


@pytest.mark.foreign
@FOREIGN
@given(st.binary(max_size=60))
def test_any_outcome_is_told_or_refused(
    redis_client: Redis, key_prefix: str, stored: bytes
) -> None:
    queue = TaskQueue(key_prefix, redis_client)
    keys = internals_of(queue).keys
    redis_client.hset(keys.done, "odd", stored)
    redis_client.delete(keys.outcome_times)
    redis_client.rpush(keys.outcome_times, "odd 1000000000000000")
    handle, inspector = queue.handle("odd"), Inspector(queue)

    for look in (handle.state, lambda: handle.result(timeout=1), handle.cancel):
        with suppress(WorkStealingError):
            look()
    for where in ("done", "dead"):
        inspector.ls(where)
    with suppress(WorkStealingError):
        inspector.why("odd")
    with suppress(WorkStealingError):
        inspector.cat("odd")
