"""Limits and fairness as a user sees them: held back, told why, changed, let go on."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from click.testing import CliRunner

from workstealing import (
    AsyncTaskQueue,
    Limit,
    TaskQueue,
    Unique,
    Worker,
    WorkStealer,
)
from workstealing.cli.queue_command import queue_command
from workstealing.errors import ConfigurationError, KeyFailed
from workstealing.inspecting import Inspector
from workstealing.queue.worker_calls import exchange, join
from workstealing.testing import Server


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Any:
    with TaskQueue(key_prefix, redis_server.url) as made:
        yield made


def take(queue: TaskQueue, want: int = 10) -> list[str]:
    """Take tasks as a worker does, and hold them."""
    parts = queue._internals
    parts.driver.call(join(parts.keys, parts.settings, "w", "1", {"abilities": []}))
    call = exchange(parts.keys, parts.settings, "w", "1", want=want, keep=0)
    exchanged = parts.driver.call(call)
    assert exchanged is not None
    return [task.id for task in exchanged.tasks]


def send(customer: int) -> int:
    return customer


def test_a_held_back_task_says_by_what(queue: TaskQueue) -> None:
    limit = Limit(concurrency=1, per="customer", name="customer")
    task = queue.task(name="send", limit=limit)(send)
    handles = [task.submit(42), task.submit(42), task.submit(7)]
    take(queue)
    take(queue)

    reason = "held back by limit customer=42: 1 of 1 running"
    assert handles[1].state().reason == reason
    first, *_ = Inspector(queue).why(handles[1].id).sentences
    assert first == f"It is {reason}."
    assert [row.id for row in Inspector(queue).ls("inbox")] == [handles[1].id]
    assert queue.counts().in_lines == 1


def test_all_tasks_of_a_limit_run_in_the_end(queue: TaskQueue) -> None:
    task = queue.task(name="send", limit=Limit(concurrency=1, per="customer"))(send)
    handles = task.submit_many([(n % 3,) for n in range(30)])

    Worker(queue).run(until_empty=True)

    assert [one.result(timeout=5) for one in handles] == [n % 3 for n in range(30)]
    assert queue.limits()[0].keys == ()


def test_a_limit_is_changed_from_the_command_line(
    queue: TaskQueue, redis_server: Server
) -> None:
    task = queue.task(name="send", limit=Limit(concurrency=1, name="mail"))(send)
    task.submit_many([(1,), (2,), (3,)])
    take(queue)
    take(queue)

    def run(*words: str, code: int = 0) -> str:
        where = ["--queue", queue.name, "--redis", redis_server.url]
        result = CliRunner().invoke(queue_command, ["limits", *words, *where])
        assert result.exit_code == code, result.output
        return result.output

    assert run("ls") == "mail: 1 at once\n  mail: 1 running, 2 held back\n"
    assert run("set", "mail", "--concurrency", "2") == (
        "mail: 2 at once, set by an operator\n"
    )
    assert len(take(queue)) == 1
    assert run("set", "mail", "--rate", "5", "--period", "60", code=2) == (
        "Error: mail is a limit on how many run at once: give concurrency\n"
    )
    for words in ((), ("--rate", "5"), ("--concurrency", "5", "--period", "1")):
        told = run("set", "mail", *words, code=2)
        assert told == "Error: give --concurrency, or --rate and --period\n"
    assert run("set", "--concurrency", "5", code=2) == (
        "Error: give the name of one limit\n"
    )
    assert run("reset", "mail") == "mail: 1 at once\n"
    assert '"is_overridden": false' in run("ls", "mail", "--json")


def test_a_rate_is_listed_without_a_number_of_running_tasks(
    queue: TaskQueue, redis_server: Server
) -> None:
    limit = Limit(rate=1, period=3600, name="mail", per="customer")
    queue.task(name="send", limit=limit)(send).submit_many([(1,), (1,)])
    take(queue)
    where = ["--queue", queue.name, "--redis", redis_server.url]

    shown = CliRunner().invoke(queue_command, ["limits", "ls", "mail", *where])

    assert shown.output.splitlines()[1:] == ["  mail=1: 1 held back"]


def test_an_unknown_limit_is_refused(queue: TaskQueue) -> None:
    with pytest.raises(ConfigurationError, match="has no limit mail"):
        queue.set_limit("mail", concurrency=1)
    with pytest.raises(ConfigurationError, match="has no limit mail"):
        queue.limits("mail")


def test_a_key_that_cannot_be_told_submits_nothing(queue: TaskQueue) -> None:
    def key_of(customer: int) -> float:
        return 1 / customer

    task = queue.task(name="send", limit=Limit(concurrency=1, per=key_of))(send)

    with pytest.raises(KeyFailed):
        task.submit_many([(1,), (0,)])
    assert queue.counts().tasks == 0


def test_asyncio_has_the_same_limits(redis_server: Server, key_prefix: str) -> None:
    async def main() -> None:
        queue = AsyncTaskQueue(key_prefix, redis_server.url)
        limit = Limit(rate=5, period=60, name="mail")
        task = queue.task(name="send", limit=limit, fair_key="customer")(send)
        await task.submit(1)
        await task.options(fair_key="other", fair_weight=2).submit(1)
        with pytest.raises(ConfigurationError, match="begin in a time: give rate and"):
            await queue.set_limit("mail", concurrency=3)
        await queue.set_limit("mail", rate=3, period=60)
        (state,) = await queue.limits("mail")
        assert (state.rate, state.is_overridden) == (3, True)
        await queue.reset_limit("mail")
        assert [one.rate for one in await queue.limits()] == [5]
        await queue.close()

    asyncio.run(main())


def test_limits_hold_for_unique_and_for_scheduled_tasks(queue: TaskQueue) -> None:
    limit = Limit(concurrency=1, name="mail")
    unique = queue.task(name="unique", limit=limit, unique=Unique())(send)
    scheduled = queue.task(name="scheduled", limit=limit)(send)
    queue.schedule(scheduled, 1, every=3600, name="hourly")
    parts = queue._internals
    parts.driver.client.zadd(parts.keys.ticks, {"hourly": 3_600_000})
    unique.submit_many([(1,), (2,)])
    stealer = WorkStealer(queue)
    stealer.recruited()
    stealer.close()
    assert queue.counts().unfinished == 3

    assert len(take(queue)) == 1
    assert take(queue) == []

    (state,) = queue.limits("mail")
    assert [(use.running, use.held_back) for use in state.keys] == [(1, 2)]


def test_a_limited_task_that_is_paused_holds_nobody_back(queue: TaskQueue) -> None:
    limit = Limit(concurrency=1, name="mail")
    paused = queue.task(name="paused", limit=limit)(send)
    other = queue.task(name="other", limit=limit)(send)
    queue.pause(paused)
    first, second = paused.submit(1), other.submit(2)

    Worker(queue).run(until_empty=True)
    assert [one.state().state for one in (first, second)] == ["paused", "done"]

    queue.resume(paused)
    Worker(queue).run(until_empty=True)
    assert first.result(timeout=5) == 1
    assert queue.limits("mail")[0].keys == ()


def test_a_limited_task_that_expires_gives_way(queue: TaskQueue) -> None:
    task = queue.task(name="send", limit=Limit(concurrency=1, name="mail"))(send)
    stale = task.options(expires=0.001).submit(1)
    time.sleep(0.01)
    fresh = task.submit(2)

    Worker(queue).run(until_empty=True)

    assert [one.state().state for one in (stale, fresh)] == ["expired", "done"]


def test_what_a_limit_holds_back_is_shown_and_is_no_backlog(
    queue: TaskQueue, redis_server: Server
) -> None:
    limit = Limit(concurrency=1, per="customer", name="customer")
    task = queue.task(name="send", limit=limit)(send)
    handles = task.submit_many([(42,), (42,), (42,), (7,)])
    assert (len(take(queue)), take(queue)) == (2, [])

    seen = Inspector(queue).stat()
    assert (seen.waiting, seen.held_back, seen.assigned + seen.running) == (2, 2, 2)
    assert queue.count(state="waiting") == seen.waiting
    assert (seen.backlog, seen.unfinished, seen.backlog_per_worker) == (2, 4, 2.0)
    assert seen.oldest_at_ms is not None
    assert seen.now_ms - 60_000 < seen.oldest_at_ms <= seen.now_ms

    note = "held back by limit customer=42"
    rows = {row.id: row.note for row in Inspector(queue).ls("inbox")}
    assert rows == dict.fromkeys((handles[1].id, handles[2].id), note)
    (run,) = Inspector(queue).tree().children
    inbox = run.children[0]
    assert inbox.note == "2 unassigned, 2 of them held back"
    notes = {file.name: file.note for file in inbox.children}
    assert {task_id: notes[task_id] for task_id in rows} == rows
    where = ["--queue", queue.name, "--redis", redis_server.url]
    shown = CliRunner().invoke(queue_command, ["stat", *where]).output
    assert "held back" in shown


def test_a_full_limit_is_told_though_all_workers_are_busy(queue: TaskQueue) -> None:
    limit = Limit(concurrency=1, per="customer", name="customer")
    task = queue.task(name="send", limit=limit)(send)
    _, waiting = task.submit_many([(42,), (42,)])
    assert len(take(queue, 1)) == 1

    reason = "held back by limit customer=42"
    assert waiting.state().reason == f"{reason}: 1 of 1 running"
    assert (
        f"It is {reason}: 1 of 1 running." in Inspector(queue).why(waiting.id).sentences
    )
    assert [row.note for row in Inspector(queue).ls("inbox")] == [reason]
    seen = Inspector(queue).stat()
    assert (seen.waiting, seen.held_back, seen.backlog) == (1, 1, 1)


def test_what_waits_for_its_turn_is_backlog(queue: TaskQueue) -> None:
    limit = Limit(concurrency=1, per="customer", name="customer")
    queue.task(name="send", limit=limit)(send).submit(42)
    note = [row.note for row in Inspector(queue).ls("inbox")]

    seen = Inspector(queue).stat()

    assert (seen.waiting, seen.held_back, seen.backlog) == (1, 0, 1)
    assert seen.oldest_at_ms is not None
    assert note == [""]


def test_a_rate_that_has_room_again_is_backlog_though_no_worker_looks(
    queue: TaskQueue,
) -> None:
    limit = Limit(rate=1, period=0.3, name="slowly")
    queue.task(name="send", limit=limit)(send).submit_many([(1,), (2,)])
    assert (len(take(queue)), take(queue)) == (1, [])
    assert Inspector(queue).stat().held_back == 1

    time.sleep(0.35)

    # An autoscaler that went to zero must come back.
    assert Inspector(queue).stat().held_back == 0


def test_only_limits_with_keys_tell_how_much_a_key_uses(queue: TaskQueue) -> None:
    limits = [
        Limit(concurrency=2, name="all"),
        Limit(rate=9, period=60, name="slowly"),
        Limit(concurrency=1, per="customer", name="customer"),
    ]
    queue.task(name="send", limit=limits)(send).submit(5)
    take(queue)

    used = {
        limit.name: [use.key for use in limit.keys] for limit in queue.limits(key=5)
    }

    assert used == {"all": [], "slowly": [], "customer": ["5"]}
    assert queue.limits("all", key="5")[0].keys == ()
    assert queue.limits("customer", key=5) == queue.limits("customer", key="5")
    assert queue.limits("customer", key=6)[0].keys[0].running == 0
    with pytest.raises(ConfigurationError, match="must be a string or a number"):
        queue.limits("customer", key=[5])
