"""How many workers a backlog wants: up at once, down only when it is sure."""

from __future__ import annotations

import pytest

from workstealing.errors import ConfigurationError
from workstealing.pool.autoscale import Autoscale, BacklogScaler


def scaler(least: int = 2, most: int = 8, idle: float = 10.0) -> BacklogScaler:
    return BacklogScaler(Autoscale(least, most, backlog=10, idle=idle))


@pytest.mark.parametrize(
    ("unfinished", "wanted"),
    [(0, 2), (20, 2), (21, 3), (50, 5), (80, 8), (81, 8), (1_000_000, 8)],
)
def test_it_grows_at_once_to_a_worker_per_backlog_within_its_bounds(
    unfinished: int, wanted: int
) -> None:
    assert scaler().decide(0.0, 2, unfinished) == wanted


def test_it_shrinks_only_when_fewer_were_enough_all_through_idle() -> None:
    scaling = scaler()

    assert scaling.decide(0.0, 8, 10) == 8
    assert scaling.decide(9.9, 8, 10) == 8
    assert scaling.decide(10.0, 8, 10) == 2


def test_it_shrinks_to_what_was_enough_all_the_time() -> None:
    scaling = scaler()

    scaling.decide(0.0, 8, 10)
    scaling.decide(5.0, 8, 55)
    assert scaling.decide(10.0, 8, 10) == 6


def test_a_backlog_that_comes_and_goes_makes_nothing_flap() -> None:
    scaling, workers = scaler(), 8
    seen = []
    for second in range(60):
        workers = scaling.decide(float(second), workers, 80 if second % 5 == 0 else 0)
        seen.append(workers)

    assert set(seen) == {8}


def test_after_growing_the_idle_time_begins_again() -> None:
    scaling = scaler()
    scaling.decide(0.0, 4, 10)
    assert scaling.decide(9.0, 4, 80) == 8

    assert scaling.decide(10.0, 8, 10) == 8
    assert scaling.decide(20.0, 8, 10) == 2


def test_with_no_idle_time_it_follows_at_once() -> None:
    assert scaler(idle=0.0).decide(0.0, 8, 0) == 2


def test_what_somebody_scaled_beyond_the_bounds_comes_back_within() -> None:
    assert scaler().decide(0.0, 20, 10) == 8


def test_bounds_that_cross_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"most must be >= least \(3\), not 2"):
        Autoscale(least=3, most=2)


def patient_scaler(wait: float = 30.0, idle: float = 10.0) -> BacklogScaler:
    return BacklogScaler(Autoscale(1, 8, wait=wait, step=2, idle=idle, backlog=100))


def test_it_grows_by_a_step_when_a_task_has_waited_too_long() -> None:
    scaling = patient_scaler()

    # Four tasks wait for the two workers; after 30 s one of the four still does.
    assert scaling.decide(0.0, 2, 6, ended=2) == 2
    assert scaling.decide(29.0, 2, 6, ended=2) == 2
    assert scaling.decide(30.0, 2, 6, ended=5) == 4


def test_it_does_not_grow_again_before_the_new_workers_had_a_chance() -> None:
    scaling = patient_scaler()
    scaling.decide(0.0, 2, 6)
    assert scaling.decide(30.0, 2, 6) == 4

    assert scaling.decide(31.0, 4, 6) == 4
    assert scaling.decide(60.0, 4, 6) == 4
    assert scaling.decide(61.0, 4, 6) == 6


def test_tasks_that_come_and_go_are_no_task_that_waits() -> None:
    """Six are always due, and each is begun within 20 s."""
    scaling = patient_scaler()
    seen = {
        scaling.decide(float(second), 2, 6, ended=second // 5) for second in range(200)
    }

    assert seen == {2}


def test_more_workers_than_tasks_have_none_that_waits() -> None:
    scaling = patient_scaler()

    assert {scaling.decide(float(n), 2, 2) for n in range(100)} == {2}


def test_it_never_grows_past_the_most_because_of_a_wait() -> None:
    scaling = patient_scaler()
    scaling.decide(0.0, 7, 90)

    assert scaling.decide(30.0, 7, 90) == 8


def test_workers_that_a_wait_has_added_stay_as_long_as_they_have_something_to_do() -> (
    None
):
    scaling = patient_scaler()

    assert {scaling.decide(float(n), 4, 4, ended=n) for n in range(100)} == {4}
    assert scaling.decide(100.0, 4, 2, ended=100) == 4
    assert scaling.decide(110.0, 4, 2, ended=101) == 2


def test_a_long_wait_is_not_remembered_second_by_second() -> None:
    scaling = patient_scaler(wait=86_400.0)
    for second in range(3000):
        scaling.decide(float(second), 2, 6, ended=second)

    assert len(scaling._waited) <= 102
