"""`rehearse()`: finds out in a test whether a task may be run again.

The rehearsal itself is in `workstealing.rehearsing`, which the command line uses, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workstealing.client.task import AsyncTask, Task, definition_of, options_of
from workstealing.errors import ConfigurationError
from workstealing.rehearsing.rehearsal import Rehearsal, StoryVerdict
from workstealing.rehearsing.rehearse_task import (
    POINTS,
    STORY_SECONDS,
    RehearsalOptions,
    drawn_seed,
    rehearse_task,
)
from workstealing.workers.queue_location import global_of

__all__ = ("Rehearsal", "StoryVerdict", "rehearse")


def rehearse(
    task: Task[..., Any] | AsyncTask[..., Any],
    *args: Any,
    before: Callable[[], object] | None = None,
    after: Callable[[], Any] | None = None,
    key: Callable[[Any], Any] | None = None,
    seed: int | None = None,
    points: int = POINTS,
    timeout: float = STORY_SECONDS,
    **kwargs: Any,
) -> Rehearsal:
    """Run a task as production will one day: killed, cut off, twice, two at once.

    It runs in processes of its own, on a server of its own. Queues that its modules
    make when they are imported are moved to that server. Everything else that the task
    does is real, also in a queue that it makes while it runs: rehearse it where you
    test it.

    Args:
        task: a task of a queue that other processes can import. One that `options()`
            returned is called on behalf of its `context`.
        args: its arguments, as for `submit`.
        before: called before each story, to begin from the same state.
        after: called after each story; what it returns is compared.
        key: takes a result and returns the part to compare; by default all of it.
        seed: decides at which points the task is disturbed; by default it is drawn. The
            rehearsal reports it.
        points: how many lines are drawn for each kind of story.
        timeout: seconds that a story may last.
        kwargs: its arguments by name; one with the name of a parameter above has to be
            given by position.

    Returns:
        A verdict for each story; `raise_for_failures()` raises if there is a bad one.
    """
    given: Any = task
    if not isinstance(given, Task | AsyncTask):
        raise ConfigurationError(
            f"rehearse() takes a task, followed by its arguments, not {task!r}"
        )
    options = RehearsalOptions(
        drawn_seed() if seed is None else seed, before, after, key, points, timeout
    )
    definition = definition_of(task)
    return rehearse_task(
        global_of(task.queue),
        definition,
        definition.signature.encode(args, kwargs),
        options,
        context=options_of(task).context,
    )
