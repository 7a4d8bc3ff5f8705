"""Bad input gets a clear answer and loses nothing, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import PayloadInvalid, TaskDead
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until


@dataclass
class Fussy:
    number: int

    def __post_init__(self) -> None:
        if self.number == 13:
            raise KeyError("unlucky")


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty=True)


def foreign(queue: TaskQueue, task_id: str, envelope: bytes) -> Any:
    """Write a task as a program in another language would."""
    client: Any = internals_of(queue).driver.client
    client.hset(internals_of(queue).keys.task, task_id, envelope)
    client.rpush(internals_of(queue).keys.inboxes[1], task_id)
    return queue.handle(task_id)


def test_a_program_in_another_language_submits_with_two_commands(
    queue: TaskQueue,
) -> None:
    @queue.task(name="add")
    def add(left: int, right: int) -> int:
        return left + right

    handle = foreign(
        queue,
        "from-afar",
        b'{"v": 1, "name": "add", "version": 1, "hint": "x",'
        b' "payload": {"left": 1, "right": 2}}',
    )
    drain(queue)

    assert handle.result(timeout=5) == 3


BINARY = [
    b"\xff\x00id",
    b"\xc3(",
    b"\xed\xa0\x80",
    b"\xe0\x80\xaf",
    b"\xf4\x90\x80\x80",
]


@pytest.mark.parametrize("task_id", BINARY)
def test_an_id_that_is_not_text_is_dead_and_stops_no_worker(
    queue: TaskQueue, task_id: bytes
) -> None:
    @queue.task(name="add")
    def add(left: int, right: int) -> int:
        return left + right

    client: Any = internals_of(queue).driver.client
    envelope = b'{"v":1,"name":"add","version":1,"payload":{"left":1,"right":2}}'
    client.hset(internals_of(queue).keys.task, task_id, envelope)
    client.rpush(internals_of(queue).keys.inboxes[1], task_id, task_id)
    handle = add.submit(3, 4)
    drain(queue)

    assert handle.result(timeout=5) == 7
    assert client.zrange(internals_of(queue).keys.dead, 0, -1) == [task_id]
    assert b"not UTF-8" in client.hget(internals_of(queue).keys.done, task_id)
    assert queue.counts().unfinished == 0


@pytest.mark.parametrize(
    "task_id", ["straße", "任务-7", "😀", "\u0800\ud7a3\U00010000"]
)
def test_an_id_may_be_in_any_language(queue: TaskQueue, task_id: str) -> None:
    @queue.task(name="add")
    def add(left: int, right: int) -> int:
        return left + right

    envelope = b'{"v":1,"name":"add","version":1,"payload":{"left":1,"right":2}}'
    handle = foreign(queue, task_id, envelope)
    drain(queue)

    assert handle.result(timeout=5) == 3


@pytest.mark.parametrize(
    ("envelope", "reason"),
    [
        (b"", "not an envelope"),
        (b"{", "not an envelope"),
        (b"[]", "not an envelope"),
        (b'{"v":1,"name":"add","version":1}', "payload"),
        (b'{"v":1,"name":"a b","version":1,"payload":{}}', "name of a task"),
        (b'{"v":1,"name":"add","version":1,"payload":[1,2]}', "JSON object"),
        (b'{"v":2,"name":"add","version":1,"payload":{}}', "format version 2"),
        (b'{"v":1,"name":"add","version":1,"payload":{"left":1}}', "'right'"),
        (
            b'{"v":1,"name":"add","version":1,"payload":{"left":"x","right":1}}',
            "'left'",
        ),
        (b'{"v":1,"name":"fussy","version":1,"payload":{"it":{"number":13}}}', "lucky"),
    ],
)
@pytest.mark.parametrize("decode", [False, True], ids=["bytes", "text"])
def test_promise_6_what_cannot_be_read_is_a_dead_letter_with_its_reason(
    make_queue: Callable[..., TaskQueue],
    redis_server: Server,
    envelope: bytes,
    reason: str,
    decode: bool,
) -> None:
    with Redis.from_url(redis_server.url, decode_responses=decode) as client:
        queue = make_queue(client)

        @queue.task(name="add")
        def add(left: int, right: int) -> int:
            return left + right

        @queue.task(name="fussy")
        def fussy(it: Fussy) -> None: ...

        bad, good = foreign(queue, "bad", envelope), add.submit(1, 2)
        drain(queue)

        assert good.result(timeout=5) == 3
        with pytest.raises((TaskDead, PayloadInvalid), match=reason):
            bad.result(timeout=5)
        assert bad.state().state is State.DEAD
        assert queue.counts().dead == 1


@pytest.mark.parametrize(
    "decode",
    [
        False,
        True,
    ],
    ids=["bytes", "text"],
)
def test_what_is_no_text_at_all_is_a_dead_letter(
    make_queue: Callable[..., TaskQueue], redis_server: Server, decode: bool
) -> None:
    with Redis.from_url(redis_server.url, decode_responses=decode) as client:
        queue = make_queue(client)
        bad = foreign(queue, "bad", b"\xff\xfe")
        drain(queue)

        assert "not an envelope" in bad.state().reason


def test_promise_6_a_dead_letter_of_a_payload_that_was_wrong_can_be_replayed(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue, later = make_queue(), make_queue()

    @queue.task(name="greet")
    def greet(name: str) -> str:
        return name

    @later.task(name="greet")
    def greet_anybody(name: str, title: str = "") -> str:
        return f"{title} {name}"

    envelope = (
        b'{"v":1,"name":"greet","version":1,"payload":{"name":"Ann","title":"Dr"}}'
    )
    handle = foreign(queue, "ann", envelope)
    drain(queue)
    assert handle.state().state is State.DEAD
    assert queue.replay("ann")
    drain(later)

    assert handle.result(timeout=5) == "Dr Ann"


def test_promise_6_a_task_that_no_worker_knows_is_parked_until_one_joins_that_does(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    old, new = make_queue(), make_queue()

    @old.task(name="greet", version=1)
    def greet(name: str) -> str:
        return f"hello {name}"

    @new.task(name="greet", version=2)
    def greet_politely(name: str, title: str) -> str:
        return f"hello {title} {name}"

    handles = greet_politely.submit_many([("Ann", "Dr")] * 3)
    crew.start(old)
    wait_until(lambda: old.counts().parked == 3, 20, "all to be parked")
    assert {handle.state().state for handle in handles} == {State.PARKED}
    assert old.wait(timeout=5).tasks == 3

    crew.start(new)

    assert [h.result(timeout=30) for h in handles] == ["hello Dr Ann"] * 3


def test_a_payload_that_is_too_large_is_a_dead_letter_whoever_wrote_it(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(max_payload=100)

    @queue.task(name="measure")
    def measure(text: str) -> int:
        return len(text)

    envelope = '{{"v": 1, "name": "measure", "version": 1, "payload": {{"text":"{}"}}}}'
    fitting = foreign(queue, "fitting", envelope.format("x" * 89).encode())
    large = foreign(queue, "large", envelope.format("x" * 90).encode())
    drain(queue)

    assert fitting.result(timeout=5) == 89
    with pytest.raises(TaskDead, match="101 bytes, but the limit is 100"):
        large.result(timeout=5)
    assert large.state().state is State.DEAD


def test_a_parked_task_can_be_cancelled(
    make_queue: Callable[..., TaskQueue],
) -> None:
    old, new = make_queue(), make_queue()

    @new.task
    def unheard_of() -> str:
        return "run"

    handle = unheard_of.submit()
    drain(old)
    assert handle.state().state is State.PARKED
    assert handle.cancel() == "cancelled"
    drain(new)

    assert handle.state().state is State.CANCELLED
    assert new.counts().parked == 0


def test_old_and_new_workers_side_by_side_do_all_that_either_knows(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    old, new = make_queue(), make_queue()

    @old.task(name="first")
    def first(number: int) -> str:
        return f"first {number}"

    @new.task(name="second")
    def second(number: int) -> str:
        return f"second {number}"

    crew.start(old)
    crew.start(new)
    handles = [
        handle
        for number in range(3)
        for handle in (first.submit(number), second.submit(number))
    ]

    assert [handle.result(timeout=40) for handle in handles] == [
        f"{word} {number}" for number in range(3) for word in ("first", "second")
    ]


def test_a_task_whose_caller_has_given_up_is_not_begun(queue: TaskQueue) -> None:
    runs: list[str] = []

    @queue.task(name="note")
    def note(word: str) -> None:
        runs.append(word)

    late = foreign(
        queue,
        "late",
        b'{"v":1,"name":"note","version":1,"deadline":1000,"payload":{"word":"late"}}',
    )
    foreign(
        queue,
        "in-time",
        b'{"v":1,"name":"note","version":1,"deadline":9000000000000,'
        b'"payload":{"word":"in time"}}',
    )
    drain(queue)

    assert runs == ["in time"]
    assert late.state().state is State.EXPIRED
    assert "it did not start by 1970" in late.state().reason
