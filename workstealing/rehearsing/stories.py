"""The stories of a rehearsal: what happens to the task, and where, drawn by a seed.

A story is one run of a task with one mishap. Where it happens is a point of the run: a
save, the end, or a step. A step is an executed line of the task's own package, so a
seed gives the same points again, whatever the clock does.
"""

from __future__ import annotations

from random import Random
from typing import Literal

import msgspec

__all__ = (
    "MOST_SAVES",
    "UNDISTURBED",
    "RehearsalStory",
    "StoryKind",
    "StoryPoint",
    "drawn_stories",
)

MOST_SAVES = 20
"""Of more saves than this, the first, the last and some in between are tried."""

StoryKind = Literal[
    "undisturbed", "run twice", "killed", "report lost", "lease lost", "two at once"
]


class StoryPoint(msgspec.Struct, frozen=True):
    """A point in the run of a task."""

    at: Literal["at step", "before save", "after save", "end"]
    number: int = 0
    """Which step or save, counted from 1."""


class RehearsalStory(msgspec.Struct, frozen=True):
    """One way in which a task is run."""

    kind: StoryKind
    first: StoryPoint | None = None
    """Where it happens to the first process that runs the task."""
    second: StoryPoint | None = None
    """Where the second one waits for the first."""

    @property
    def sentence(self) -> str:
        """What happens, for somebody who has not met it in production yet."""
        return _SENTENCES[self.kind]

    def title(self, where: str = "") -> str:
        """Name it, with the place where it happened, if that is known."""
        point = self.first
        if point is None or point.at == "end":
            return self.kind
        name = f"{self.kind} {point.at} {point.number}"
        return f"{name}, {where}" if where else name


UNDISTURBED = RehearsalStory("undisturbed")

_SENTENCES: dict[StoryKind, str] = {
    "undisturbed": "Nothing happened to it. It was run two times, each from the same"
    " start, to see that it can be compared.",
    "run twice": "It was done, and then the same task was run again by another process,"
    " as after a replay.",
    "killed": "Its process was killed there, and another process ran the task again,"
    " from its last checkpoint.",
    "report lost": "It had returned, but its worker died before Redis knew. Another"
    " process ran the task again.",
    "lease lost": "Its process was cut off from Redis there, for longer than its lease."
    " Another process ran the task to its end. Then the first one was told that its"
    " lease was lost, and went on.",
    "two at once": "Its process was frozen there, for longer than its lease. Another"
    " process began the task again. Then the first one ran on without knowing, to its"
    " end, and after it the second one.",
}


def drawn_stories(
    seed: int, *, steps: int, saves: int, points: int, runs_once: bool
) -> list[RehearsalStory]:
    """Return what is to happen to a task that takes so many steps and saves.

    Args:
        seed: the same one gives the same stories.
        steps: how many it took when nothing happened to it.
        saves: how often it saved.
        points: how many steps to draw for each kind of story.
        runs_once: it must never be run again, so stories that would are left out.
    """
    draw = Random(seed)  # noqa: S311 - not for secrets, and it must be repeatable
    at_saves = [
        point
        for number in _chosen_saves(draw, saves)
        for point in (
            StoryPoint("before save", number),
            StoryPoint("after save", number),
        )
    ]
    kills = [*at_saves, *_drawn_steps(draw, steps, points)]
    stories = [RehearsalStory("killed", point) for point in kills]
    stories.append(RehearsalStory("report lost", StoryPoint("end")))
    stories += [
        RehearsalStory("lease lost", point)
        for point in _drawn_steps(draw, steps, points)
    ]
    if runs_once:
        return stories
    pairs = zip(
        _drawn_steps(draw, steps, points),
        draw.sample(_drawn_steps(draw, steps, points), min(points, steps)),
        strict=True,
    )
    return [
        RehearsalStory("run twice"),
        *stories,
        *(RehearsalStory("two at once", *pair) for pair in pairs),
    ]


def _chosen_saves(draw: Random, saves: int) -> list[int]:
    every = range(1, saves + 1)
    if saves <= MOST_SAVES:
        return list(every)
    return sorted([1, saves, *draw.sample(every[1:-1], MOST_SAVES - 2)])


def _drawn_steps(draw: Random, steps: int, points: int) -> list[StoryPoint]:
    """Draw one step from each of as many equal parts of the run."""
    parts = min(points, steps)
    return [
        StoryPoint(
            "at step",
            1 + draw.randrange(part * steps // parts, (part + 1) * steps // parts),
        )
        for part in range(parts)
    ]
