"""How much to take at once, learnt from how long tasks last."""

from __future__ import annotations

from workstealing.workers.batching import Batching


def learnt(*seconds: float, most: int = 100) -> Batching:
    batching = Batching(most)
    for mean in seconds:
        batching.lasted(10, 10 * mean)
    return batching


def test_it_begins_with_one() -> None:
    assert Batching().want == 1


def test_quick_tasks_are_taken_in_growing_batches() -> None:
    assert learnt(0.0001).want == 4
    assert learnt(0.0001, 0.0001).want == 16
    assert learnt(*[0.0001] * 9).want == 100


def test_a_batch_lasts_about_50_ms() -> None:
    assert learnt(*[0.005] * 9).want == 10


def test_long_tasks_are_taken_one_by_one() -> None:
    assert learnt(*[0.0001] * 9, 0.2).want == 1


def test_no_more_than_asked_for_are_taken() -> None:
    assert learnt(*[0.0001] * 9, most=7).want == 7


def test_tasks_that_take_no_time_at_all_are_no_problem() -> None:
    assert learnt(0.0, 0.0).want == 16


def test_nothing_done_teaches_nothing() -> None:
    batching = learnt(0.005)
    before = batching.want

    batching.lasted(0, 100.0)

    assert batching.want == before


def test_some_batches_wait_where_thieves_reach_them() -> None:
    assert Batching().keep == 8
    assert learnt(*[0.0001] * 9).keep == 800
