"""The jobs that follow, budget, flush, refresh and reclaim, on three nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import RedisCluster

import workstealing.jobs
from workstealing import Duty
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import Conflict
from workstealing.jobs import (
    AsyncCounterFlush,
    AsyncMissingTTL,
    AsyncNamespaceBudget,
    AsyncPendingReclaim,
    AsyncQueueTracker,
    AsyncRefreshAhead,
    CounterFlush,
    MissingTTL,
    NamespaceBudget,
    PendingReclaim,
    QueueTracker,
    RefreshAhead,
)
from workstealing.jobs.job_keys import slot_of
from workstealing.queue.steps import Call

from ..conftest import StrictDriver

LUA = Path(workstealing.jobs.__file__).parent / "lua"
ROWS = [str(row) for row in range(10, 70)]


def next_rows(after: str | None, count: int) -> list[str]:
    return [row for row in ROWS if after is None or row > after][:count]


def still_there(ids: list[str]) -> set[str]:
    return set(ids) & set(ROWS)


def write(client: RedisCluster, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}:{n}" for n in range(count)]
    for name in names:
        client.set(name, "value")
    return names


def pending_entries(client: RedisCluster, stream: str, count: int) -> None:
    """Entries of a consumer that has been silent for a long time."""
    client.xgroup_create(stream, "group", mkstream=True)
    ids = [client.xadd(stream, {"number": n}) for n in range(count)]
    client.xreadgroup("group", "lost", {stream: ">"})
    client.xclaim(stream, "group", "lost", 0, ids, idle=61_000, justid=True)


def test_slots_are_those_of_the_server(cluster_client: RedisCluster) -> None:
    for key in ("plain", "a{tag}b", "a{}b", "{", "a{b", "}{x}", "{{x}}", "ä"):
        assert slot_of(key) == cluster_client.cluster_keyslot(key)


def test_a_set_follows_its_table(cluster_client: RedisCluster, key_prefix: str) -> None:
    tracker = QueueTracker(
        cluster_client, key_prefix, next_rows=next_rows, still_there=still_there
    )
    tracker.add("gone")

    for _ in range(12):
        tracker.recruited()

    assert tracker.ids() == set(ROWS)
    assert tracker.remove("10") == 1
    assert not tracker.contains("10")


def test_every_node_is_visited_for_keys_without_a_ttl(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    names = write(cluster_client, key_prefix, 60)
    notes, pattern = f"{key_prefix}-notes", f"{key_prefix}:*"
    dry = MissingTTL(cluster_client, notes, pattern, ttl=100)
    real = MissingTTL(cluster_client, notes, pattern, ttl=100, dry_run=False)

    while not dry.report().complete:
        dry.recruited()
    assert (dry.report().without_ttl, dry.report().given) == (60, 0)
    assert all(cluster_client.ttl(name) == -1 for name in names)

    while not real.report().complete:
        real.recruited()
    assert real.report().given == 60
    assert all(cluster_client.ttl(name) > 0 for name in names)


def test_a_namespace_in_many_slots_is_held_under_its_budget(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    names = write(cluster_client, key_prefix, 40)
    budget = NamespaceBudget(
        cluster_client, f"{key_prefix}-budget", f"{key_prefix}:", most_keys=15
    )
    budget.add(*names[:20])  # the scan finds the others
    assert budget.touch(*names) == 40

    for _ in range(1000):
        budget.recruited()
        if sum(cluster_client.exists(name) for name in names) == 15:
            break

    assert sum(cluster_client.exists(name) for name in names) == 15
    assert budget.usage().keys == 15


def test_a_budget_of_bytes_is_held_in_many_slots(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    names = write(cluster_client, key_prefix, 40)
    size = cluster_client.memory_usage(names[0])
    budget = NamespaceBudget(
        cluster_client, f"{key_prefix}-budget", f"{key_prefix}:", most_bytes=size * 20
    )
    budget.add(*names)

    for _ in range(60):
        budget.recruited()

    assert 15 <= sum(cluster_client.exists(name) for name in names) <= 20
    assert budget.usage().bytes <= size * 20


def test_counters_reach_their_sink(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    batches: list[tuple[str, dict[str, int]]] = []
    counters = CounterFlush(
        cluster_client, key_prefix, lambda *batch: batches.append(batch), batch=2
    )
    for n in range(5):
        counters.increment(f"c{n}", n)

    while counters.recruited() is Duty.MORE:
        pass

    assert len({batch_id for batch_id, _ in batches}) == 3
    assert {k: v for _, counts in batches for k, v in counts.items()} == {
        f"c{n}": n for n in range(5)
    }
    assert counters.pending() == 0


def test_values_are_refreshed(cluster_client: RedisCluster, key_prefix: str) -> None:
    computed: list[str] = []

    def compute(name: str) -> str:
        computed.append(name)
        return f"{name}{len(computed)}"

    values = RefreshAhead(cluster_client, key_prefix, compute, ttl=100, ahead=100)
    assert values.get("{odd}name") == "{odd}name1"
    assert values.get("{odd}name") == b"{odd}name1"

    assert values.recruited() is Duty.MORE

    assert values.get("{odd}name") == b"{odd}name2"
    assert values.forget("{odd}name")
    assert values.pending() == 0


def test_entries_of_lost_consumers_are_handled_or_buried(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    handled: list[Any] = []
    pending_entries(cluster_client, key_prefix, 5)
    job = PendingReclaim(
        cluster_client, key_prefix, "group", lambda *entry: handled.append(entry)
    )
    assert job.recruited() is Duty.RECRUITED
    assert (len(handled), job.pending(), job.dead()) == (5, 0, 0)

    pending_entries(cluster_client, f"{key_prefix}-poison", 3)
    poison = PendingReclaim(
        cluster_client,
        f"{key_prefix}-poison",
        "group",
        lambda *_: None,
        max_deliveries=1,
    )
    poison.recruited()
    assert (poison.pending(), poison.dead()) == (0, 3)


def test_every_script_names_keys_of_one_slot(
    cluster_client: RedisCluster,
    strict: StrictDriver,
    key_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = Driver._send

    def strictly(driver: Driver, step: Any) -> Any:
        return strict._send(step) if isinstance(step, Call) else send(driver, step)

    monkeypatch.setattr(Driver, "_send", strictly)

    test_a_set_follows_its_table(cluster_client, f"{key_prefix}-1")
    test_every_node_is_visited_for_keys_without_a_ttl(cluster_client, f"{key_prefix}-2")
    test_a_budget_of_bytes_is_held_in_many_slots(cluster_client, f"{key_prefix}-3")
    test_counters_reach_their_sink(cluster_client, f"{key_prefix}-4")
    test_values_are_refreshed(cluster_client, f"{key_prefix}-5")
    test_entries_of_lost_consumers_are_handled_or_buried(
        cluster_client, f"{key_prefix}-6"
    )
    assert strict.performed == {
        path.stem
        for path in LUA.glob("*.lua")
        if path.stem.startswith(
            (
                *("budget_", "counter_", "fresh_", "lease_"),
                *("names_", "reclaim_", "scan_", "t"),
            )
        )
    }


def test_two_recruits_do_not_flush_one_batch(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    def sink(batch_id: str, counts: dict[str, int]) -> None:
        with pytest.raises(Conflict):
            counters.recruited()

    counters = CounterFlush(cluster_client, key_prefix, sink)
    counters.increment("a")

    assert counters.recruited() is Duty.RECRUITED


async def test_the_asyncio_faces_do_the_same(
    async_cluster_client: AsyncRedisCluster,
    cluster_client: RedisCluster,
    key_prefix: str,
) -> None:
    client = async_cluster_client
    names = write(cluster_client, key_prefix, 30)
    pending_entries(cluster_client, f"{key_prefix}-stream", 3)
    handled: list[Any] = []

    def handle(*arguments: Any) -> str:
        handled.append(arguments)
        return "value"

    tracker = AsyncQueueTracker(
        client, f"{key_prefix}-set", next_rows=next_rows, still_there=still_there
    )
    missing = AsyncMissingTTL(
        client, f"{key_prefix}-notes", f"{key_prefix}:*", ttl=100, dry_run=False
    )
    budget = AsyncNamespaceBudget(
        client, f"{key_prefix}-budget", f"{key_prefix}:", most_keys=20
    )
    counters = AsyncCounterFlush(client, f"{key_prefix}-counters", handle)
    values = AsyncRefreshAhead(client, f"{key_prefix}-values", handle, ttl=100)
    reclaim = AsyncPendingReclaim(client, f"{key_prefix}-stream", "group", handle)

    while not (await missing.report()).complete:
        await missing.recruited()
    assert (await missing.report()).given == 30
    await budget.add(*names)
    assert await budget.touch(*names) == 30
    for _ in range(12):
        await tracker.recruited()
        await budget.recruited()
    assert await tracker.ids() == set(ROWS)
    assert sum(cluster_client.exists(name) for name in names) == 20
    await counters.increment("a")
    assert await counters.recruited() is Duty.RECRUITED
    assert await values.get("a") == "value"
    assert await reclaim.recruited() is Duty.RECRUITED
    assert len(handled) == 5
