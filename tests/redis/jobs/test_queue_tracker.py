from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import Duty
from workstealing.errors import ConfigurationError, HookFailed
from workstealing.jobs import AsyncQueueTracker, QueueTracker
from workstealing.testing import Server


class Table:
    """A table elsewhere: a set of numbers in their order."""

    def __init__(self, *rows: int) -> None:
        self.rows = set(rows)
        self.pages: list[str | None] = []

    def next_rows(self, after: str | None, count: int) -> list[int]:
        self.pages.append(after)
        start = -1 if after is None else int(after)
        return sorted(row for row in self.rows if row > start)[:count]

    def still_there(self, ids: list[str]) -> set[int]:
        return {int(identifier) for identifier in ids} & self.rows


@pytest.fixture
def table() -> Table:
    return Table(*range(60))


@pytest.fixture
def tracker(any_redis: Redis, key_prefix: str, table: Table) -> QueueTracker:
    return tracker_of(any_redis, key_prefix, table)


def tracker_of(client: Redis, key: str, table: Table, batch: int = 25) -> QueueTracker:
    return QueueTracker(
        client,
        key,
        next_rows=table.next_rows,
        still_there=table.still_there,
        batch=batch,
    )


def rows_of(table: Table) -> set[str]:
    return set(map(str, table.rows))


def test_ids_are_added_found_and_removed(tracker: QueueTracker) -> None:
    assert tracker.add(1, "2") == 2
    assert tracker.add(1) == 0
    assert tracker.contains(1)
    assert not tracker.contains("3")
    assert tracker.ids() == {"1", "2"}
    assert tracker.remove(1, "3") == 1
    assert tracker.count() == 1


def test_slices_add_all_rows_page_by_page(tracker: QueueTracker, table: Table) -> None:
    while tracker.recruited() is Duty.MORE:
        pass

    assert tracker.ids() == rows_of(table)
    assert table.pages == [None, "24", "49"]


def test_slices_remove_ids_that_the_table_lost(
    tracker: QueueTracker, table: Table
) -> None:
    tracker.add(*range(100, 160), *table.rows)

    duties = [tracker.recruited() for _ in range(12)]

    assert tracker.ids() == rows_of(table)
    assert Duty.MORE in duties
    assert duties[-1] is Duty.DISMISSED


def test_ids_are_asked_about_in_turn_so_that_none_hides_behind_others(
    any_redis: Redis, key_prefix: str, table: Table
) -> None:
    tracker = QueueTracker(
        any_redis,
        key_prefix,
        next_rows=lambda after, count: [],
        still_there=table.still_there,
        batch=10,
    )
    tracker.add(*table.rows)
    tracker.add("500")

    for _ in range(20):
        tracker.recruited()

    assert tracker.ids() == rows_of(table)


def test_an_empty_table_and_an_empty_set_are_no_work(
    tracker: QueueTracker, table: Table
) -> None:
    table.rows.clear()

    assert [tracker.recruited() for _ in range(3)] == [Duty.DISMISSED] * 3


def test_the_cursor_is_shared_and_begins_again_at_the_end(
    any_redis: Redis, key_prefix: str, table: Table
) -> None:
    for _ in range(9):
        tracker_of(any_redis, key_prefix, table).recruited()

    # A removing slice comes between two adding ones.
    assert table.pages == [None, "24", "49", None, "24"]


def test_an_id_added_while_the_table_is_asked_is_kept(
    any_redis: Redis, key_prefix: str, table: Table
) -> None:
    def answer_before_the_row_came_back(ids: list[str]) -> set[int]:
        there = Table.still_there(table, ids)
        table.rows.add(500)
        tracker.add(500)
        return there

    tracker = tracker_of(any_redis, key_prefix, table)
    tracker.add(500)
    tracker.recruited()
    table.still_there = answer_before_the_row_came_back  # type: ignore[method-assign]
    tracker = tracker_of(any_redis, key_prefix, table)

    tracker.recruited()

    assert tracker.contains(500)


def test_a_clock_that_goes_back_loses_no_id(
    tracker: QueueTracker, any_redis: Redis, key_prefix: str, table: Table
) -> None:
    ahead = int(any_redis.time()[0]) * 1000 + 3_600_000
    any_redis.hset(f"{{{key_prefix}}}:tracking", "stamp", ahead)

    tracker.add(1)

    assert any_redis.zscore(key_prefix, "1") >= ahead


def test_an_id_of_the_same_millisecond_is_removed_when_it_is_gone(
    tracker: QueueTracker, any_redis: Redis, key_prefix: str, table: Table
) -> None:
    ahead = int(any_redis.time()[0]) * 1000 + 3_600_000
    any_redis.hset(f"{{{key_prefix}}}:tracking", mapping={"stamp": ahead, "turn": 1})
    tracker.add(500)

    tracker.recruited()

    assert not tracker.contains(500)


def test_more_rows_than_asked_for_do_no_harm(
    any_redis: Redis, key_prefix: str, table: Table
) -> None:
    tracker = QueueTracker(
        any_redis,
        key_prefix,
        next_rows=lambda after, count: table.next_rows(after, 1000),
        still_there=table.still_there,
        batch=10,
    )

    for _ in range(20):
        tracker.recruited()

    assert tracker.ids() == rows_of(table)


def test_an_error_of_the_table_reaches_the_recruiter_and_changes_nothing(
    any_redis: Redis, key_prefix: str, table: Table
) -> None:
    tracker = tracker_of(any_redis, key_prefix, table)
    tracker.add(7, 500)

    def fail(*_: Any) -> Any:
        raise LookupError("the database is away")

    broken = QueueTracker(any_redis, key_prefix, next_rows=fail, still_there=fail)

    for _ in range(2):
        with pytest.raises(HookFailed, match="LookupError"):
            broken.recruited()
    assert tracker.ids() == {"7", "500"}


def test_wrong_arguments_are_refused(redis_client: Redis, table: Table) -> None:
    with pytest.raises(ConfigurationError):
        tracker_of(redis_client, "", table)
    with pytest.raises(ConfigurationError):
        tracker_of(redis_client, "key", table, batch=0)


def test_two_recruits_at_once_leave_the_set_right(
    redis_server: Server,
    key_prefix: str,
    table: Table,
    both_at_once: Callable[..., list[Any]],
) -> None:
    with (
        Redis.from_url(redis_server.url) as one,
        Redis.from_url(redis_server.url) as two,
    ):
        trackers = [tracker_of(client, key_prefix, table, 10) for client in (one, two)]
        trackers[0].add(*range(100, 160))

        def work(tracker: QueueTracker) -> None:
            for _ in range(20):
                tracker.recruited()

        both_at_once(lambda: work(trackers[0]), lambda: work(trackers[1]))

        assert trackers[0].ids() == rows_of(table)


async def test_the_asyncio_face_does_the_same(
    any_async_redis: AsyncRedis, key_prefix: str, table: Table
) -> None:
    async def next_rows(after: str | None, count: int) -> list[int]:
        return table.next_rows(after, count)

    tracker = AsyncQueueTracker(
        any_async_redis,
        key_prefix,
        next_rows=next_rows,
        still_there=table.still_there,
    )
    assert await tracker.add(500, 501) == 2
    assert await tracker.contains(500)
    assert await tracker.remove(501) == 1

    for _ in range(12):
        await tracker.recruited()

    assert await tracker.ids() == rows_of(table)
    assert await tracker.count() == 60
