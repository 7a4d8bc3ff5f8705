"""When a worker of several queues has nothing left in any of them."""

from __future__ import annotations

from workstealing.workers.shared_slots import AllEmpty


def test_it_ends_when_every_queue_stays_empty() -> None:
    seen = AllEmpty(2)

    looks = [seen.sees(place, is_empty=True) for place in (0, 1, 0, 1, 0, 1)]

    assert looks[:3] == [False] * 3
    assert looks[-2:] == [True, True]


def test_a_queue_that_was_fed_by_the_last_task_of_another_is_seen_in_time() -> None:
    seen = AllEmpty(2)
    for _ in range(5):
        assert not seen.sees(1, is_empty=True)
        assert not seen.sees(0, is_empty=False)

    # The last task of the first queue submits to the second, and ends.
    assert not seen.sees(0, is_empty=True)
    seen.has_tasks(1)

    assert not any(seen.sees(0, is_empty=True) for _ in range(5))


def test_a_look_that_began_before_another_queue_became_empty_does_not_count() -> None:
    seen = AllEmpty(2)
    seen.sees(1, is_empty=True)
    seen.sees(1, is_empty=True)
    seen.sees(0, is_empty=True)

    # It may have been on its way by then.
    assert not seen.sees(1, is_empty=True)
    assert not seen.seems_so() or not seen.sees(0, is_empty=False)


def test_whoever_looks_after_the_others_ended_ends_too() -> None:
    seen = AllEmpty(2)
    while not seen.sees(0, is_empty=True):
        seen.sees(1, is_empty=True)

    assert not seen.sees(1, is_empty=False)
    assert seen.sees(1, is_empty=True)
