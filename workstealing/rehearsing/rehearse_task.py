"""Rehearses a task: runs its stories, and compares their results."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.spawn import get_preparation_data
from random import SystemRandom
from typing import Any

import msgspec

from workstealing._checks import checked_number, checked_whole
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError
from workstealing.inspecting.formatting import plural
from workstealing.rehearsing.comparing import (
    StoryResult,
    problems_of,
    problems_of_undisturbed,
)
from workstealing.rehearsing.process_messages import StoryFindings, TaskSetup
from workstealing.rehearsing.rehearsal import Rehearsal, StoryVerdict
from workstealing.rehearsing.rehearsal_server import InQueues, RehearsalServer
from workstealing.rehearsing.stories import (
    MOST_SAVES,
    UNDISTURBED,
    RehearsalStory,
    drawn_stories,
)
from workstealing.rehearsing.story_process import IN_REHEARSAL, StoryProcess
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.signature import decode_result
from workstealing.tasks.submission import NOBODY, ClientContext
from workstealing.workers.queue_location import QueueLocation

__all__ = ("POINTS", "STORY_SECONDS", "RehearsalOptions", "drawn_seed", "rehearse_task")

POINTS = 4
"""How many steps are drawn for each kind of story by default."""
STORY_SECONDS = 30.0
"""How long a story may take by default."""

# The same in each story, since a task may store its id.
_TASK_ID = "rehearsal"
_LARGEST_SEED = 2**31 - 1
_MOST_DRAWN = 1_000_000


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """How to rehearse a task; checked when it is made."""

    seed: int
    """Chooses the points."""
    before: Callable[[], object] | None = None
    """Restores the same start for each story."""
    after: Callable[[], Any] | None = None
    """Returns what a story has left behind, to be compared."""
    key: Callable[[Any], Any] | None = None
    """Returns the part of a result that is compared."""
    points: int = POINTS
    timeout: float = STORY_SECONDS

    def __post_init__(self) -> None:
        if os.environ.get(IN_REHEARSAL):
            raise ConfigurationError(
                "a rehearsal imports this module in other processes, where it must not"
                " begin again: put it into a test, or under"
                ' `if __name__ == "__main__":`'
            )
        for name in ("before", "after", "key"):
            function: Any = getattr(self, name)
            if function is None:
                continue
            if not callable(function) or inspect.iscoroutinefunction(function):
                raise ConfigurationError(
                    f"{name} must be a plain function, not {function!r}; a coroutine"
                    " function is called by one with asyncio.run()"
                )
        checked_whole(self.seed, "seed", 0, _LARGEST_SEED)
        checked_whole(self.points, "points", 1, 1000)
        checked_number(self.timeout, "timeout", unit=" s")


def drawn_seed() -> int:
    """Return a random seed that is short enough to be typed."""
    return SystemRandom().randrange(_MOST_DRAWN)


def rehearse_task(
    location: QueueLocation,
    definition: TaskDefinition,
    payload: bytes,
    options: RehearsalOptions,
    *,
    context: ClientContext = NOBODY,
    on_verdict: Callable[[StoryVerdict], object] = bool,
) -> Rehearsal:
    """Rehearse a task, and tell each verdict at once.

    Raises:
        ConfigurationError: other processes cannot import the task.
    """
    verdicts: list[StoryVerdict] = []
    with ExitStack() as stack:
        server = stack.enter_context(RehearsalServer())
        setup = _task_setup(location, definition, payload, context, server.url)
        process = stack.enter_context(StoryProcess(setup, options.timeout))
        rehearser = _Rehearser(location, definition, options, server, process)
        for verdict in rehearser.verdicts():
            verdicts.append(verdict)
            on_verdict(verdict)
    return Rehearsal(definition.name, options.seed, tuple(verdicts))


class _Rehearser:
    """Runs stories, and judges them."""

    def __init__(
        self,
        location: QueueLocation,
        definition: TaskDefinition,
        options: RehearsalOptions,
        server: RehearsalServer,
        process: StoryProcess,
    ) -> None:
        self._definition = definition
        self._runs_once = definition.restart == "never"
        self._options = options
        self._server = server
        self._process = process
        self._keys = internals_of(location.find()).keys

    def verdicts(self) -> Iterator[StoryVerdict]:
        """Run one story after the other; the first one says which others there are."""
        usual, again = self._run(UNDISTURBED), None
        if not usual.findings.problem:
            again = self._run(UNDISTURBED)
        problems = problems_of_undisturbed(usual, again or usual)
        note = "" if problems else _measured(usual.findings)
        yield _verdict(UNDISTURBED, usual.findings, problems, note)
        if problems:
            yield _skipped("all other stories", "there is nothing to compare with")
            return
        steps, saves = usual.findings.steps, usual.findings.saves
        yield from _left_out(steps, saves, runs_once=self._runs_once)
        for story in drawn_stories(
            self._options.seed,
            steps=steps,
            saves=saves,
            points=self._options.points,
            runs_once=self._runs_once,
        ):
            seen = self._run(story)
            if not seen.findings.is_reached:
                yield _skipped(story.title(), "it ended before it came to that point")
                continue
            problems = problems_of(story, seen, usual, runs_once=self._runs_once)
            note = (
                "one process had to wait for the other"
                if seen.findings.is_blocked
                else ""
            )
            yield _verdict(story, seen.findings, problems, note)

    def _run(self, story: RehearsalStory) -> StoryResult:
        options = self._options
        if options.before is not None:
            options.before()
        self._server.clear()
        try:
            findings = self._process.run(story, _TASK_ID)
        except TimeoutError:
            seconds = f"{options.timeout:g} s"
            return StoryResult(
                StoryFindings(f"it did not end within {seconds}"), InQueues(None, ())
            )
        in_queues = self._server.look(self._keys, _TASK_ID)
        left = None if options.after is None else options.after()
        return StoryResult(findings, in_queues, self._compared(in_queues.outcome), left)

    def _compared(self, outcome: TaskOutcome | None) -> Any:
        """Return the part of a result that is compared."""
        if outcome is None or outcome.state != "done":
            return None
        if self._options.key is None:
            return msgspec.json.decode(outcome.result)
        wanted = self._definition.signature.result_type
        return self._options.key(decode_result(outcome.result, wanted))


def _verdict(
    story: RehearsalStory, findings: StoryFindings, problems: list[str], note: str = ""
) -> StoryVerdict:
    return StoryVerdict(
        story.title(findings.where),
        "failed" if problems else "passed",
        tuple(problems),
        note,
        f"{story.kind}: {story.sentence}",
    )


def _skipped(story: str, why: str) -> StoryVerdict:
    return StoryVerdict(story, "skipped", note=why)


def _measured(findings: StoryFindings) -> str:
    return f"{plural(findings.steps, 'step')}, {plural(findings.saves, 'save')}"


def _left_out(steps: int, saves: int, *, runs_once: bool) -> Iterator[StoryVerdict]:
    """Say which stories are not run, and why."""
    if not saves:
        yield _skipped("killed at a save", "it saves no checkpoint")
    if saves > MOST_SAVES:
        yield _skipped(
            f"killed at the other {saves - MOST_SAVES} saves",
            f"{MOST_SAVES} of {saves} are tried, as the seed says",
        )
    if not steps:
        yield _skipped(
            "killed, lease lost and two at once at a step",
            "it executes no line of its own package",
        )
    if runs_once:
        yield _skipped("run twice and two at once", "it must not be run again")


def _task_setup(
    location: QueueLocation,
    definition: TaskDefinition,
    payload: bytes,
    context: ClientContext,
    url: str,
) -> TaskSetup:
    modules = [location.module, definition.function.__module__]
    known = {name: sys.modules[name] for name in modules if name in sys.modules}
    prepared = get_preparation_data("rehearsal") if "__main__" in known else {}
    return TaskSetup(
        main={key: one for key, one in prepared.items() if key.startswith("init_main")},
        modules=list(known),
        files={
            name: os.path.abspath(path)
            for name, module in known.items()
            if (path := getattr(module, "__file__", None))
        },
        queue=location.name,
        task=definition.name,
        version=definition.version,
        payload=payload.decode(),
        principal=context.principal,
        roles=list(context.roles),
        url=url,
    )
