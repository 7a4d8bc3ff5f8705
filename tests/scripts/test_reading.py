"""What those who only look are told, and who is told when a task ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workstealing.queue.inspection_calls import begun_at, counts, trace
from workstealing.queue.producer_calls import cancel, replay, request_outcome
from workstealing.queue.upkeep_calls import reassign
from workstealing.queue.worker_calls import steal
from workstealing.tasks.outcome import TaskOutcome, outcome_of_deaths


def test_nothing_is_known_of_a_stranger(queue: Any) -> None:
    seen = queue.again(trace(queue.keys, "never"))

    assert (seen.envelope, seen.worker, seen.token, seen.outcome) == (b"", "", "", b"")
    assert (seen.due_ms, seen.dead_at_ms, seen.needs) == (None, None, "")
    assert queue.do(begun_at(queue.keys, "w", "never")) is None


def test_a_task_is_followed_through_its_life(queue: Any) -> None:
    queue.join("v.0", "w.#0")
    queue.submit(*"abcd", due_ms=1)
    assert queue.do(trace(queue.keys, "c")).due_ms == 1
    queue.take("v.0", 1, keep=2)
    assert queue.do(trace(queue.keys, "c")).worker == "v.0"
    queue.do(steal(queue.keys, "v.0", "w.#0"))

    task = queue.take("w.#0", 1)[0]
    seen = queue.do(trace(queue.keys, task.id))

    assert (seen.worker, seen.token, seen.steals) == ("w.#0", task.token, 1)
    assert seen.envelope == task.envelope
    assert queue.do(begun_at(queue.keys, "w.#0", task.id)) is not None
    queue.report("w.#0", "done", task, outcome=b"\xff")
    seen = queue.do(trace(queue.keys, task.id))
    assert (seen.envelope, seen.worker, seen.outcome) == (b"", "", b"\xff")


def test_all_places_are_counted(queue: Any) -> None:
    queue.join("v", "w", abilities=["x@1"])
    queue.submit("low", priority=2)
    queue.submit(*"abcdefgh")
    queue.submit("later", delay_ms=60_000)
    taken = queue.take("v", 2, keep=2)
    queue.report("v", "done", taken[0])
    queue.report("v", "dead", taken[1])

    seen = queue.do(counts(queue.keys))

    assert seen.inbox == (0, 4, 1)
    assert (seen.tasks, seen.assigned, seen.outcomes) == (9, 2, 1)
    assert (seen.delayed, seen.dead, seen.parked) == (1, 1, 0)
    assert seen.unfinished == 8
    assert seen.loads == {"v": 2}
    assert seen.abilities == {"x@1": 2}
    assert set(seen.leases) == {"v", "w"}
    assert seen.stats["submitted"] == 10
    assert not seen.input_ended


@pytest.fixture
def heard(queue: Any) -> Any:
    """Listen on two channels; return what was told by now."""
    listener = queue.client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("told-1", "told-12")
    listener.get_message(timeout=10)  # that it listens

    def told(number: int) -> list[tuple[bytes, bytes]]:
        messages: list[tuple[bytes, bytes]] = []
        for _ in range(200):
            message = listener.get_message(timeout=0.05)
            if message:
                messages.append((message["channel"], message["data"]))
            if len(messages) >= number:
                break
        return sorted(messages)

    yield told
    listener.close()


def ended(queue: Any) -> bytes:
    queue.report("w", "done", *queue.take("w"), outcome=b"fine \xff")
    return b"fine \xff"


def given_up(queue: Any) -> bytes:
    queue.client.hset(queue.keys.history, "a", "0:2:0:")
    queue.take("w")
    queue.end_lease("w")
    queue.do(reassign(queue.keys, queue.settings, "w", most=9))
    return outcome_of_deaths(3)


def cancelled(queue: Any) -> bytes:
    queue.do(cancel(queue.keys, queue.settings, "a", "", b"fine \xff"))
    return b"fine \xff"


@pytest.mark.parametrize("happen", [ended, given_up, cancelled])
def test_each_who_waits_is_told_once(
    queue: Any, heard: Any, happen: Callable[[Any], bytes]
) -> None:
    queue.join("w")
    queue.submit("a")
    for channel in ("told-12", "told-1", "told-12"):
        queue.do(request_outcome(queue.keys, "a", channel))
    queue.again(request_outcome(queue.keys, "a", "told-1"))

    data = b"a " + happen(queue)

    assert heard(2) == [(b"told-1", data), (b"told-12", data)]
    assert "awaited" not in queue.state()


def test_who_waits_for_a_task_that_no_worker_can_name_is_told_at_once(
    queue: Any, heard: Any
) -> None:
    queue.join("w")
    queue.client.hset(queue.keys.task, b"\xff", b"{}")
    queue.client.rpush(queue.keys.inboxes[1], b"\xff")
    queue.client.hset(queue.keys.awaited, b"\xff", "told-1")

    assert queue.take("w") == ()

    reason = queue.client.hget(queue.keys.done, b"\xff")
    assert TaskOutcome.read(reason).state == "dead"
    assert heard(1) == [(b"told-1", b"\xff " + reason)]
    assert not queue.client.exists(queue.keys.awaited)


def test_only_the_last_few_who_wait_are_remembered(queue: Any) -> None:
    queue.submit("a")
    for number in range(10):
        queue.do(request_outcome(queue.keys, "a", f"channel-{number}"))

    awaited = queue.state()["awaited"]["a"].split()

    assert awaited == [f"channel-{number}" for number in range(6, 10)]


def test_nobody_waits_for_what_has_ended(queue: Any) -> None:
    queue.join("w")
    queue.submit("a", "b")
    a, b = queue.take("w")
    queue.report("w", "done", a)
    queue.report("w", "dead", b)

    for name in "ab":
        seen = queue.again(request_outcome(queue.keys, name, "c"))
        assert (seen.verdict, seen.outcome) == ("ended", b"outcome")


def test_nobody_waits_for_a_stranger_or_for_a_reason_that_is_lost(queue: Any) -> None:
    queue.join("w")
    queue.submit("a")
    queue.report("w", "dead", *queue.take("w"))
    queue.client.hdel(queue.keys.done, "a")

    assert queue.again(request_outcome(queue.keys, "never", "c")).verdict == "unknown"
    assert queue.again(request_outcome(queue.keys, "a", "c")).verdict == "lost"
    queue.do(replay(queue.keys, "a", drop=True))


def test_who_asks_when_submitting_and_again_is_told_once(queue: Any) -> None:
    queue.submit("a", channel="told-1")

    queue.again(request_outcome(queue.keys, "a", "told-1"))
