"""What came of a rehearsal: a verdict for each story, and the seed to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workstealing.inspecting.formatting import plural

__all__ = ("Rehearsal", "StoryVerdict")


@dataclass(frozen=True, slots=True)
class StoryVerdict:
    """What came of one story; `str()` says it in words."""

    story: str
    """What happened to the task, and where: `killed before save 2, shop.py:14`."""
    status: Literal["passed", "failed", "skipped"]
    problems: tuple[str, ...] = ()
    """What was not as it is when nothing happens, a sentence each."""
    note: str = ""
    """What was seen besides, or why it was skipped."""
    explanation: str = ""
    """What such a story is."""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        lines = [f"{self.status:<8}{self.story}{note}"]
        return "\n".join([*lines, *(f"        {one}" for one in self.problems)])


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """All verdicts of a rehearsal; `str()` lists them."""

    task: str
    seed: int
    """Gives the same stories again, if the task takes the same steps."""
    verdicts: tuple[StoryVerdict, ...]

    @property
    def passed(self) -> bool:
        """Whether no story failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[StoryVerdict, ...]:
        """The stories that failed."""
        return tuple(one for one in self.verdicts if one.status == "failed")

    @property
    def summary(self) -> str:
        """How many stories failed, and the seed, in a line."""
        run = sum(one.status != "skipped" for one in self.verdicts)
        stories = plural(run, "story", "stories")
        if self.passed:
            return f"{self.task} passed {stories} (seed {self.seed})"
        return (
            f"{self.task} failed {len(self.failures)} of {stories} (seed {self.seed})"
        )

    @property
    def explanations(self) -> tuple[str, ...]:
        """What happened in the stories that failed, each kind once."""
        return tuple(dict.fromkeys(one.explanation for one in self.failures))

    def raise_for_failures(self) -> None:
        """Raise an `AssertionError` that lists all verdicts, if a story failed."""
        __tracebackhide__ = True
        if not self.passed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.summary}:", *map(str, self.verdicts), *self.explanations]
        )
