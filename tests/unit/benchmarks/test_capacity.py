"""What the queueing model says follows from what it was told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.capacity import Costs, Fleet, forecast

COSTS = Costs(
    submit=2, submit_alone=10, run=8, run_alone=30, rest=15, look=5, publish=3
)
FLEET = Fleet(hosts=1, workers_per_host=1, nodes=1, shards=1)


def test_one_node_runs_what_fits_into_the_time_that_it_may_be_busy() -> None:
    seen = forecast(replace(COSTS, rest=0), FLEET)

    assert seen.per_task == 10
    assert seen.tasks_per_second == pytest.approx(70_000)
    assert seen.busy_at_rest == 0


def test_nodes_carry_as_many_times_as_much_however_many_shards_each_has() -> None:
    costs = replace(COSTS, rest=0, look=0)
    one = forecast(costs, FLEET).tasks_per_second

    ten = forecast(costs, replace(FLEET, nodes=10, shards=40)).tasks_per_second
    uneven = forecast(costs, replace(FLEET, nodes=3, shards=8)).tasks_per_second

    assert ten == pytest.approx(10 * one)
    assert uneven == pytest.approx(3 * one)


def test_nodes_without_a_shard_carry_nothing() -> None:
    one = forecast(COSTS, FLEET)

    assert forecast(COSTS, replace(FLEET, nodes=10)) == one


def test_workers_that_rest_take_their_part() -> None:
    fleet = replace(FLEET, hosts=1000, workers_per_host=8)

    seen = forecast(COSTS, fleet)

    assert seen.busy_at_rest == pytest.approx(8000 * 15 / 5 / 1e6)
    assert seen.tasks_per_second < forecast(COSTS, FLEET).tasks_per_second


@given(
    st.integers(1, 5000),
    st.integers(1, 64),
    st.integers(1, 50),
    st.integers(1, 256),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_it_never_promises_more_than_a_node_has(
    hosts: int, workers: int, nodes: int, shards: int, batched: float, awaited: float
) -> None:
    fleet = Fleet(hosts, workers, nodes, shards, batched, awaited)

    seen = forecast(COSTS, fleet)

    assert seen.tasks_per_second >= 0
    assert seen.wait >= 0
    assert (
        seen.tasks_per_second * seen.per_task / 1e6 <= 0.7 * min(nodes, shards) + 1e-6
    )
