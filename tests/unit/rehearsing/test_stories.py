"""Which stories a task meets is drawn by a seed, from all parts of its run."""

from __future__ import annotations

import pytest

from workstealing.rehearsing.stories import (
    MOST_SAVES,
    RehearsalStory,
    StoryPoint,
    drawn_stories,
)


def drawn(
    seed: int = 1,
    steps: int = 40,
    saves: int = 3,
    points: int = 4,
    runs_once: bool = False,
) -> list[RehearsalStory]:
    return drawn_stories(
        seed, steps=steps, saves=saves, points=points, runs_once=runs_once
    )


def steps_of(kind: str, stories: list[RehearsalStory]) -> list[int]:
    return [
        one.first.number
        for one in stories
        if one.kind == kind and one.first is not None and one.first.at == "at step"
    ]


def test_a_task_is_killed_before_and_after_each_of_its_saves() -> None:
    points = [one.first for one in drawn() if one.kind == "killed"][:6]

    assert points == [
        StoryPoint(at, number)
        for number in (1, 2, 3)
        for at in ("before save", "after save")
    ]


def test_of_many_saves_some_are_chosen_and_the_first_and_the_last() -> None:
    chosen = [
        one.first.number
        for one in drawn(saves=1000)
        if one.first is not None and one.first.at == "before save"
    ]

    assert len(set(chosen)) == MOST_SAVES
    assert (chosen[0], chosen[-1]) == (1, 1000)
    assert chosen == sorted(chosen)


@pytest.mark.parametrize("kind", ["killed", "lease lost", "two at once"])
@pytest.mark.parametrize("seed", range(20))
def test_steps_are_drawn_from_all_parts_of_the_run(kind: str, seed: int) -> None:
    quarters = [(step - 1) // 10 for step in steps_of(kind, drawn(seed))]

    assert quarters == [0, 1, 2, 3]


def test_a_task_of_few_steps_meets_each_kind_at_each_of_them() -> None:
    stories = drawn(steps=3, points=4)

    for kind in ("killed", "lease lost", "two at once"):
        assert steps_of(kind, stories) == [1, 2, 3]


def test_a_task_of_no_steps_and_no_saves_can_still_be_run_again() -> None:
    assert [one.kind for one in drawn(steps=0, saves=0)] == ["run twice", "report lost"]


def test_the_same_seed_gives_the_same_stories_and_another_one_others() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_a_task_that_must_not_be_run_again_is_not_run_twice() -> None:
    kinds = {one.kind for one in drawn(runs_once=True)}

    assert kinds == {"killed", "report lost", "lease lost"}


def test_a_story_is_named_after_what_happens_and_where() -> None:
    at_step = RehearsalStory("lease lost", StoryPoint("at step", 7))

    assert at_step.title() == "lease lost at step 7"
    assert at_step.title("shop.py:14") == "lease lost at step 7, shop.py:14"
    assert RehearsalStory("report lost", StoryPoint("end")).title() == "report lost"
