"""An inspector shows a queue with shards as one, also if it was not told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from workstealing import TaskQueue, Worker
from workstealing.cli.queue_command import queue_command
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError, TaskNotFound
from workstealing.inspecting import Inspector
from workstealing.inspecting.task_search import TaskFilter
from workstealing.queue.worker_calls import join
from workstealing.testing import Server

SHARDS = 4


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(key_prefix, redis_server.url, shards=SHARDS)
    yield queue
    queue.close()


@pytest.fixture
def inspector(redis_server: Server, key_prefix: str) -> Iterator[Inspector]:
    unaware = TaskQueue(key_prefix, redis_server.url)
    yield Inspector(unaware)
    unaware.close()


@pytest.fixture
def add(queue: TaskQueue) -> Any:
    @queue.task(name="add", retries=0)
    def add(a: int, b: int) -> int:
        if b < 0:
            raise ValueError("negative")
        return a + b

    return add


def test_stat_adds_up_all_shards_and_shows_each(
    queue: TaskQueue, inspector: Inspector, add: Any
) -> None:
    for n in range(3 * SHARDS):
        add.submit(n, n)
    queue.pause("other")

    seen = inspector.stat()

    assert (seen.waiting, seen.inbox) == (12, (0, 12, 0))
    assert seen.totals.submitted == 12
    assert [one.waiting for one in seen.shards] == [3] * SHARDS
    assert [one.task for one in seen.pauses] == ["other"]
    Worker(queue).run(until_empty=True)
    after = inspector.stat()
    assert (after.waiting, after.totals.done) == (0, 12)
    assert sum(one.done for one in after.shards) == 12


def test_a_queue_without_shards_shows_none(inspector: Inspector) -> None:
    assert inspector.stat().shards == ()


def test_pages_of_a_search_find_each_task_once(inspector: Inspector, add: Any) -> None:
    ids = {add.submit(n, n).id for n in range(5 * SHARDS)}
    wanted = TaskFilter(state="waiting")

    found: list[str] = []
    after = ""
    while True:
        page = inspector.search(wanted, after, limit=3)
        assert page.total == 5 * SHARDS
        assert len(page.rows) <= 3
        found += [row.id for row in page.rows]
        after = page.after
        if not after:
            break

    assert sorted(found) == sorted(ids)
    for wrong in ("9/", "x/", "-1/", "no place"):
        with pytest.raises(ConfigurationError, match="after"):
            inspector.search(wanted, wrong, limit=3)


def test_lists_trees_and_details_are_of_all_shards(
    queue: TaskQueue, inspector: Inspector, add: Any
) -> None:
    handles = [add.submit(n, n) for n in range(2 * SHARDS)]
    named = add.options(id="named").submit(1, 2)
    bad = [add.submit(1, -1) for _ in range(SHARDS)]

    rows = inspector.ls("inbox", 100)
    assert [row.at_ms for row in rows] == sorted(row.at_ms for row in rows)
    assert {row.id for row in rows} == {one.id for one in (*handles, named, *bad)}
    assert inspector.cat("named").id == "named"
    assert "waiting" in str(inspector.why(handles[3].id))
    (run,) = inspector.tree(5).children
    assert [one.name for one in run.children] == [
        f"shard-{shard}" for shard in range(SHARDS)
    ]
    with pytest.raises(TaskNotFound):
        inspector.cat("nobody")

    Worker(queue).run(until_empty=True)
    assert {row.id for row in inspector.ls("dead", 100)} == {one.id for one in bad}
    (kind,) = inspector.error_groups().groups
    assert (kind.tasks, kind.error) == (SHARDS, "ValueError")
    now_ms = inspector.stat().now_ms
    assert sum(one.done for one in inspector.history(now_ms, 5).tasks) == 9
    assert inspector.events().releases


def test_delayed_tasks_of_all_shards_are_counted_by_when_they_are_due(
    inspector: Inspector, add: Any
) -> None:
    for n in range(2 * SHARDS):
        add.options(delay=30).submit(n, n)

    seen = inspector.due_times(inspector.stat().now_ms)

    assert sum(seen.tasks) == 2 * SHARDS


def test_the_command_line_shows_shards_if_there_are_several(
    redis_server: Server, key_prefix: str, add: Any
) -> None:
    for n in range(SHARDS):
        add.submit(n, n)
    options = ["--redis", redis_server.url, "--queue", key_prefix]

    shown = CliRunner().invoke(queue_command, ["stat", *options])

    assert shown.exit_code == 0, shown.output
    assert "shard" in shown.output


def _join(queue: TaskQueue, shard: int, worker: str, ability: str) -> None:
    parts = internals_of(queue)
    told = {"abilities": [ability]}
    call = join(parts.shards.all[shard], parts.settings, worker, "1", told)
    parts.driver.call(call)


def test_why_a_task_waits_knows_of_the_workers_in_other_shards(
    queue: TaskQueue, inspector: Inspector, add: Any
) -> None:
    here = {
        int(one.id.partition(".")[0]): one for one in map(add.submit, *[range(4)] * 2)
    }
    named = queue.task(name="fair", fair_key="who")(lambda who: None)
    fair = {int(one.id.partition(".")[0]): one for one in map(named.submit, "abcd")}
    assert "because no worker is alive" in str(inspector.why(here[1].id))

    _join(queue, 2, "away.0", "paint@1")
    assert "but none can run add@1: it will be parked" in str(inspector.why(here[1].id))

    _join(queue, 3, "away.1", "add@1")
    told = inspector.why(here[1].id).sentences
    assert "No worker is in its shard now." in told
    assert "2 workers are alive; one looks there within about a second." in told
    assert "No worker is in its shard now." in inspector.why(fair[1].id).sentences
    assert "1 worker is alive; the next free one will run it." in (
        inspector.why(here[3].id).sentences
    )
    assert (
        "1 worker is in its shard, but none there can run add@1; one from another"
        " shard can, and looks there within seconds."
    ) in inspector.why(here[2].id).sentences


def test_why_a_task_waits_says_so_if_there_is_one_worker_in_another_shard(
    queue: TaskQueue, inspector: Inspector, add: Any
) -> None:
    here = {
        int(one.id.partition(".")[0]): one for one in map(add.submit, *[range(4)] * 2)
    }
    _join(queue, 3, "away.1", "add@1")

    told = inspector.why(here[1].id).sentences

    assert "1 worker is alive; it looks there within about a second." in told
