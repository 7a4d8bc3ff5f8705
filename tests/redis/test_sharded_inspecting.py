"""An inspector shows a queue with shards as one, also if it was not told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from workstealing import TaskQueue, Worker
from workstealing.cli.queue_command import queue_command
from workstealing.errors import ConfigurationError, TaskNotFound
from workstealing.inspecting import Inspector
from workstealing.inspecting.task_search import TaskFilter
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
