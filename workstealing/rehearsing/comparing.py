"""Says in words how the result of a story differs from that of an undisturbed run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from reprlib import Repr
from typing import Any

from workstealing.rehearsing.process_messages import StoryFindings
from workstealing.rehearsing.rehearsal_server import InQueues
from workstealing.rehearsing.stories import RehearsalStory
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.retry import OUTCOME_UNKNOWN

__all__ = ("StoryResult", "problems_of", "problems_of_undisturbed")

_SHOWN_ENTRIES = 3


@dataclass(frozen=True, slots=True)
class StoryResult:
    """What a story left behind, and how it went."""

    findings: StoryFindings
    in_queues: InQueues
    result: Any = None
    """The part of its result that is compared."""
    left: Any = None
    """What the user's function `after` returned."""


def problems_of_undisturbed(first: StoryResult, second: StoryResult) -> list[str]:
    """Return why a task cannot be rehearsed; nothing if it can."""
    for seen in (first, second):
        if problems := [*_odd_ends(seen)]:
            return problems
    return [
        *(
            f"It returned {one}: two runs of it differ. Give key= (--key) to compare"
            " only what must be the same."
            for one in _difference(second.result, first.result)
        ),
        *(
            f"It submitted {one}: two runs of it differ."
            for one in _other_tasks(second, first)
        ),
        *(
            f"It left something else behind, {one}: two runs of it differ. Let before="
            " (--before) make the same start each time, and after= (--after) leave out"
            " what may differ, such as times."
            for one in _difference(second.left, first.left)
        ),
    ]


def problems_of(
    story: RehearsalStory,
    seen: StoryResult,
    undisturbed: StoryResult,
    *,
    runs_once: bool,
) -> list[str]:
    """Return what is wrong with the result of a story, a sentence each."""
    if runs_once:
        return [*_broken_promises(seen)]
    if problems := [*_odd_ends(seen)]:
        return problems
    problems = [
        f"It returned {one}." for one in _difference(seen.result, undisturbed.result)
    ]
    problems += [f"It submitted {one}." for one in _other_tasks(seen, undisturbed)]
    problems += [
        f"It left something else behind: {one}."
        for one in _difference(seen.left, undisturbed.left)
    ]
    if story.kind == "lease lost" and seen.findings.ignored:
        problems.append(
            "It was told by StopWork that its lease was lost, and went on,"
            f" {seen.findings.ignored}. Let StopWork pass."
        )
    return problems


def _odd_ends(seen: StoryResult) -> Iterator[str]:
    """Say how a task ended, if it is not done."""
    if seen.findings.problem:
        yield f"{_capitalized(seen.findings.problem)}."
        return
    outcome = seen.in_queues.outcome
    if outcome is None:
        yield "It has not ended, and no process runs it any more."
    elif outcome.state != "done":
        yield _ending(outcome)


def _broken_promises(seen: StoryResult) -> Iterator[str]:
    """Say what went wrong with a task that must never be run twice."""
    if seen.findings.problem:
        yield f"{_capitalized(seen.findings.problem)}."
    if seen.findings.begun > 1:
        yield f"It was begun {seen.findings.begun} times, and must not be run again."
    outcome = seen.in_queues.outcome
    if outcome is None:
        yield "It has not ended, and no process runs it any more."
    elif outcome.state != "dead" or not outcome.reason.startswith(OUTCOME_UNKNOWN):
        yield f"It was not given up with “{OUTCOME_UNKNOWN}”. {_ending(outcome)}"


def _ending(outcome: TaskOutcome) -> str:
    if outcome.state == "done":
        return "It is done."
    state = outcome.as_state()
    how = {"failed": "It failed", "dead": "It was given up"}.get(
        outcome.state, f"It is {outcome.state}"
    )
    return f"{how}: {state.reason}." if state.reason else f"{how}."


def _other_tasks(seen: StoryResult, undisturbed: StoryResult) -> Iterator[str]:
    found, usual = (Counter(one.in_queues.submitted) for one in (seen, undisturbed))
    for task in sorted({*found, *usual}):
        if found[task] != usual[task]:
            yield f"{task} {_times(found[task])}, instead of {_times(usual[task])}"


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _difference(found: Any, usual: Any) -> Iterator[str]:
    """Say how a value differs from that of the undisturbed run, if it does."""
    if found == usual:
        return
    if not isinstance(found, Mapping) or not isinstance(usual, Mapping):
        yield f"{_SHORT.repr(found)} instead of {_SHORT.repr(usual)}"
        return
    parts = [f"{_SHORT.repr(key)} is missing" for key in usual if key not in found]
    for key, value in found.items():
        if key not in usual:
            parts.append(f"{_SHORT.repr(key)} is there too: {_SHORT.repr(value)}")
        elif value != usual[key]:
            parts.append(
                f"{_SHORT.repr(key)} is {_SHORT.repr(value)} instead of"
                f" {_SHORT.repr(usual[key])}"
            )
    more = len(parts) - _SHOWN_ENTRIES
    if more > 0:
        parts[_SHOWN_ENTRIES:] = [f"and {more} more"]
    yield ", ".join(parts)


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


class _Short(Repr):
    """Shows values in a line or two."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 10
        self.maxstring = self.maxother = 100


_SHORT = _Short()
