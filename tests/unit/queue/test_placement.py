"""Which shard a task is in: always the same, and each about as often."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from workstealing.queue.placement import (
    MOST_SHARDS,
    by_node,
    divided,
    grouped,
    id_in_shard,
    shard_in_id,
    shard_of_id,
    shard_of_key,
    shard_of_turn,
    tag_of_shard,
)
from workstealing.tasks.envelope import member_id
from workstealing.tasks.submission import new_ids

SHARDS = st.integers(1, MOST_SHARDS)
NAMES = st.text(min_size=1, max_size=40)
OWNERS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=64)


@given(SHARDS, st.data())
def test_a_drawn_id_is_in_its_shard_before_and_after_shards_are_added(
    shards: int, data: st.DataObject
) -> None:
    shard = data.draw(st.integers(0, shards - 1))
    later = data.draw(st.integers(shards, MOST_SHARDS))
    (drawn,) = new_ids(1)
    task_id = id_in_shard(drawn, shard)

    assert shard_in_id(task_id) == shard
    assert shard_of_id(task_id, shards) == shard_of_id(task_id, later) == shard
    assert shard_of_id(member_id(task_id, 7), later) == shard


@given(NAMES, SHARDS, SHARDS)
def test_a_name_stays_or_goes_to_a_shard_that_was_added(
    name: str, one: int, other: int
) -> None:
    fewer, more = sorted((one, other))

    before, after = shard_of_key(name, fewer), shard_of_key(name, more)

    assert 0 <= before < fewer
    assert after == before or fewer <= after < more


@given(NAMES, SHARDS)
def test_any_id_has_a_shard(name: str, shards: int) -> None:
    assert 0 <= shard_of_id(name, shards) < shards


def test_names_are_spread_evenly() -> None:
    counted = Counter(shard_of_key(f"order-{number}", 8) for number in range(20_000))

    assert len(counted) == 8
    assert max(counted.values()) < 1.1 * min(counted.values())


def test_a_name_that_only_begins_like_a_drawn_id_is_hashed() -> None:
    for name in ("3.invoice", "3.abcdefghijklm", "03.abcdefghijkl", "x3.abcdefghijkl"):
        assert shard_in_id(name) is None
    assert shard_in_id("3.abcdefghijkl-12") == 3


@given(st.integers(0, 5000), OWNERS)
def test_a_submission_is_divided_into_parts_that_are_all_of_it(
    tasks: int, owners: list[str]
) -> None:
    sizes = divided(tasks, by_node(owners))

    assert sum(sizes) == tasks
    assert max(sizes) - min(sizes) <= 1


@given(OWNERS, st.integers(0, 10_000))
def test_a_large_submission_gives_each_node_as_much_and_each_shard_something(
    owners: list[str], turn: int
) -> None:
    nodes = by_node(owners)
    sizes = divided(1_000_000, nodes)

    parts = Counter[int]()
    for number, size in enumerate(sizes, turn):
        parts[shard_of_turn(number, nodes)] += size
    per_node = [sum(parts[shard] for shard in shards) for shards in nodes]

    assert parts.keys() == set(range(len(owners)))
    assert max(per_node) - min(per_node) <= len(sizes)


def test_a_short_submission_is_one_part() -> None:
    assert divided(99, by_node("abcabcab")) == [99]


def test_positions_are_grouped_by_shard() -> None:
    assert grouped([2, 0, 2]) == {2: [0, 2], 0: [1]}


@given(
    st.text(alphabet="abcxyz0189-_", min_size=1, max_size=20),
    st.integers(2, 64),
    st.integers(2, 16),
)
def test_nodes_with_equal_stretches_have_about_as_many_shards(
    name: str, shards: int, nodes: int
) -> None:
    slots = [
        key_slot(f"{tag_of_shard(f'{name}/run', one)}".encode())
        for one in range(shards)
    ]

    counted = Counter(slot * nodes // 16384 for slot in slots)

    mean = shards / nodes
    assert all(abs(counted[node] - mean) < 4 for node in range(nodes))


def test_the_tag_of_the_first_shard_is_that_of_a_queue_without_shards() -> None:
    assert tag_of_shard("mail/default", 0) == "mail/default"
    tags = {tag_of_shard("mail/default", shard) for shard in range(MOST_SHARDS)}
    assert len(tags) == MOST_SHARDS
