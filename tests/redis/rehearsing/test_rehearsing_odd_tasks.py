"""Tasks that fail, hang, die, differ or must not be run again can be rehearsed too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Annotated

import pytest

from workstealing import (
    INJECTED,
    AccessPolicy,
    ClientContext,
    ExecutionContext,
    Resource,
    TaskQueue,
)
from workstealing.errors import ConfigurationError, PayloadInvalid
from workstealing.testing import MemoryQueue, Rehearsal, rehearse

pytestmark = pytest.mark.slow

queue = TaskQueue(
    "odd",
    "redis://nowhere.invalid:6379/0",
    replicas=2,
    retention=0,
    max_length=1,
    secret="a secret of sixteen bytes",
    max_dead=1,
)
guarded = TaskQueue("guarded", policy=AccessPolicy({"editor": {"edit"}}))
unlucky = TaskQueue("unlucky")
spread = TaskQueue("spread", shards=4)
in_memory = MemoryQueue("rehearsed-in-memory")


class Drawer:
    """What a resource yields."""


@queue.resource
def drawer() -> Iterator[Drawer]:
    yield Drawer()


@queue.task
def fail(text: str) -> None:
    raise ValueError(text)


@queue.task(retries=5)
def fail_at_first(folder: str) -> int:
    done = Path(folder, "done")
    if not done.exists():
        done.touch()
        raise ConnectionError("try again")
    return 1


@queue.task
def hang() -> None:
    time.sleep(600)


@queue.task
def hang_if_told_to(folder: str) -> None:
    if Path(folder, "hang").exists():
        time.sleep(600)


@queue.task
def exit_at_once() -> None:
    os._exit(3)


@queue.task
def draw_lots() -> float:
    return random.random()


@queue.task(idempotent=False)
def charge(folder: str, context: ExecutionContext) -> None:
    with Path(folder, "charges").open("a") as charges:
        charges.write("1 EUR\n")
    context.save("charged")


@queue.task
def put_into(into: Annotated[Drawer, Resource] = INJECTED) -> str:
    return type(into).__name__


@unlucky.resource
def broken_drawer() -> Iterator[Drawer]:
    raise OSError("no drawer")
    yield Drawer()


@unlucky.task
def put_nowhere(into: Annotated[Drawer, Resource] = INJECTED) -> None: ...


@guarded.task(permission="edit")
def edit() -> str:
    return "edited"


@in_memory.task
def remember() -> int:
    return 1


@spread.task
def hand_on() -> str:
    receive.submit()
    return "handed on"


@spread.task
def receive() -> None: ...


def plain() -> None: ...


def stories(rehearsal: Rehearsal, status: str) -> list[str]:
    return [str(one) for one in rehearsal.verdicts if one.status == status]


def test_a_task_that_fails_undisturbed_is_not_rehearsed_any_further() -> None:
    rehearsal = rehearse(fail, "no such customer")

    assert not rehearsal.passed
    assert [str(one) for one in rehearsal.verdicts] == [
        ("failed  undisturbed\n        It failed: ValueError: no such customer."),
        "skipped all other stories (there is nothing to compare with)",
    ]


def test_a_task_that_is_tried_again_has_to_end_as_usual(tmp_path: Path) -> None:
    done = tmp_path / "done"

    rehearsal = rehearse(
        fail_at_first,
        str(tmp_path),
        before=lambda: done.unlink(missing_ok=True),
        after=done.exists,
        points=1,
    )

    rehearsal.raise_for_failures()


def test_a_task_that_hangs_is_said_to_hang_and_its_processes_are_ended() -> None:
    rehearsal = rehearse(hang, timeout=1)

    (problem,) = rehearsal.failures[0].problems
    assert problem == "It did not end within 1 s."
    assert rehearsal.verdicts[-1].status == "skipped"


def test_after_a_story_that_hangs_the_next_one_is_run(tmp_path: Path) -> None:
    sign, stories_before = tmp_path / "hang", count()

    def hang_in_the_third() -> None:
        if next(stories_before) == 2:
            sign.touch()
        else:
            sign.unlink(missing_ok=True)

    rehearsal = rehearse(
        hang_if_told_to, str(tmp_path), before=hang_in_the_third, points=1, timeout=5
    )

    assert stories(rehearsal, "failed") == [
        "failed  run twice\n        It did not end within 5 s."
    ]
    assert len(stories(rehearsal, "passed")) == 5


def test_a_process_that_ends_by_itself_is_told() -> None:
    rehearsal = rehearse(exit_at_once)

    (problem,) = rehearsal.failures[0].problems
    assert problem == "Its process ended by itself, with exit code 3."


def test_a_task_that_returns_something_else_each_time_needs_a_key() -> None:
    without = rehearse(draw_lots)
    with_key = rehearse(draw_lots, key=lambda drawn: 0.0 <= drawn < 1.0, points=1)

    assert "two runs of it differ. Give key=" in str(without)
    with_key.raise_for_failures()


def test_a_start_that_is_not_made_anew_is_told_from_a_defect(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def note() -> int:
        with log.open("a") as lines:
            lines.write("seen\n")
        return log.read_text().count("seen")

    rehearsal = rehearse(draw_lots, key=lambda _: 1, after=note)

    assert "Let before= (--before) make the same start each time" in str(rehearsal)


def test_a_task_that_must_not_be_run_twice_is_given_up_wherever_it_is_killed(
    tmp_path: Path,
) -> None:
    charges = tmp_path / "charges"

    rehearsal = rehearse(
        charge,
        str(tmp_path),
        before=lambda: charges.unlink(missing_ok=True),
        after=lambda: charges.read_text() if charges.exists() else "",
        points=2,
    )

    rehearsal.raise_for_failures()
    assert stories(rehearsal, "skipped") == [
        "skipped run twice and two at once (it must not be run again)"
    ]
    assert sum("killed" in one for one in stories(rehearsal, "passed")) == 4


def test_a_task_is_called_on_behalf_of_whom_its_options_name() -> None:
    editor = ClientContext("ann", roles={"editor"})

    assert not rehearse(edit).passed
    rehearse(edit.options(context=editor), points=1).raise_for_failures()


def test_resources_are_opened_as_by_a_worker() -> None:
    rehearse(put_into, points=1).raise_for_failures()


def test_a_resource_that_cannot_be_opened_is_told() -> None:
    (problem,) = rehearse(put_nowhere).failures[0].problems

    assert problem.startswith("Its worker failed: ")
    assert "no drawer" in problem


def test_a_queue_in_memory_is_rehearsed_on_a_server() -> None:
    rehearse(remember, points=1).raise_for_failures()


def test_a_task_of_a_queue_with_shards_is_rehearsed() -> None:
    rehearse(receive, points=1).raise_for_failures()


def test_what_a_task_submits_to_another_shard_is_compared() -> None:
    rehearsal = rehearse(hand_on, points=1)

    assert stories(rehearsal, "passed")[0].startswith("passed  undisturbed")
    problem = f"It submitted {receive.name} {{}} twice, instead of once."
    assert {one.problems for one in rehearsal.failures} == {(problem,)}


def test_arguments_that_do_not_fit_are_refused_before_anything_is_started() -> None:
    with pytest.raises(PayloadInvalid, match="text"):
        rehearse(fail, 7)


def test_what_is_no_task_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="takes a task, followed by"):
        rehearse(plain)


def test_a_hook_that_is_no_plain_function_is_refused() -> None:
    async def reset() -> None: ...

    with pytest.raises(ConfigurationError, match="before must be a plain function"):
        rehearse(hang, before=reset)


@pytest.mark.parametrize("option", ["seed", "points", "timeout"])
def test_a_number_that_makes_no_sense_is_refused(option: str) -> None:
    with pytest.raises(ConfigurationError, match=option):
        rehearse(hang, **{option: -1})


def test_a_task_inside_of_a_function_is_refused() -> None:
    @queue.task(name="local")
    def local() -> None: ...

    with pytest.raises(ConfigurationError, match="define it at the top of a module"):
        rehearse(local)


def test_a_queue_inside_of_a_function_is_refused() -> None:
    own = TaskQueue("own")
    task = own.task(plain)

    with pytest.raises(ConfigurationError, match=r"make it a global of a module$"):
        rehearse(task)


SCRIPT = """
from workstealing import TaskQueue
from workstealing.testing import rehearse

queue = TaskQueue("script")

@queue.task
def add(one: int) -> int:
    return one + 1

{}print(rehearse(add, 1, points=1).summary)
"""


def run(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(source)
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_a_script_rehearses_its_own_tasks(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT.format('if __name__ == "__main__": '))

    assert "script.add passed 6 stories" in done.stdout, done.stderr


def test_a_script_that_begins_while_it_is_imported_is_told_what_to_do(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, SCRIPT.format(""))

    assert done.returncode == 1
    assert 'put it into a test, or under `if __name__ == "__main__":`' in done.stderr
