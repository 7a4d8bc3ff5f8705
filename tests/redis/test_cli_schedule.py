"""`workstealing schedule`: list, pause, resume, run and remove."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.testing import Server

_MORE = """

    @queue.every(
        "0 3 * * *", timezone="Europe/Berlin", name="nightly", arguments=("x",)
    )
    @queue.task(name="say")
    def say(text: str) -> str:
        return text
"""


Schedule = Callable[..., Any]


@pytest.fixture
def named(redis_server: Server, key_prefix: str) -> tuple[str, ...]:
    """The options that name the queue."""
    return ("--queue", key_prefix, "--redis", redis_server.url)


@pytest.fixture
def declared(app: Path, run_cli: Any) -> None:
    """A worker has declared the schedule that is in the code."""
    code = (app / "app.py").read_text()
    (app / "app.py").write_text(code + _MORE.replace("\n    ", "\n"))
    run_cli("worker", "app:queue", "--until-empty")


@pytest.fixture
def schedule(run_cli: Any, named: tuple[str, ...]) -> Schedule:
    """Run `workstealing schedule WORD --queue … `."""
    return lambda word, *more: run_cli("schedule", word, *named, *more)


def test_where_there_is_no_queue_or_no_schedule_it_says_so(
    schedule: Schedule, redis_server: Server, key_prefix: str
) -> None:
    nothing = schedule("ls")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert f"there is no queue {key_prefix}/default" in nothing.stderr
    for word in ("pause", "run", "rm"):
        missed = schedule(word, "nightly")
        assert (missed.returncode, missed.stdout) == (1, "")
        assert f"there is no queue {key_prefix}/default" in missed.stderr

    with TaskQueue(key_prefix, redis_server.url) as queue:
        queue.pause("say")
    assert schedule("ls").stderr == "no schedules\n"


@pytest.mark.usefixtures("declared")
def test_schedules_are_listed_for_people_and_programs(
    schedule: Schedule, redis_server: Server, key_prefix: str
) -> None:
    assert "nightly   say@1  0 3 * * * Europe/Berlin  in " in schedule("ls").stdout
    (row,) = json.loads(schedule("ls", "--json").stdout)
    assert (row["name"], row["origin"], row["fired"]) == ("nightly", "code", 0)

    with TaskQueue(key_prefix, redis_server.url) as queue:
        internals = internals_of(queue)
        internals.driver.client.zadd(internals.keys.ticks, {"nightly": 1000})
    assert "overdue: nobody fires it" in schedule("ls").stdout


@pytest.mark.usefixtures("declared")
def test_a_schedule_is_paused_and_resumed(schedule: Schedule, run_cli: Any) -> None:
    assert schedule("pause", "nightly").stdout == "nightly: paused\n"
    assert schedule("pause", "nightly").stdout == "nightly: was paused before\n"
    assert "  paused  " in schedule("ls").stdout
    resumed = run_cli("schedule", "resume", "app:queue", "nightly")
    assert resumed.stdout == "nightly: resumed\n"
    again = schedule("resume", "nightly")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "Error: nightly is not paused\n"
    assert schedule("pause").returncode == 2
    assert schedule("pause", "a b").returncode == 2


@pytest.mark.usefixtures("declared")
def test_a_schedule_is_run_by_hand(
    schedule: Schedule, run_cli: Any, redis_server: Server, key_prefix: str
) -> None:
    ran = schedule("run", "nightly").stdout.strip()
    assert ran.startswith("nightly@20")
    run_cli("worker", "app:queue", "--until-empty")
    with TaskQueue(key_prefix, redis_server.url) as queue:
        assert queue.handle(ran).result(timeout=5) == "x"


@pytest.mark.usefixtures("declared")
def test_a_schedule_that_was_removed_stays_so_until_it_is_resumed(
    schedule: Schedule, run_cli: Any
) -> None:
    removed = schedule("rm", "nightly", "other")
    assert (removed.returncode, removed.stdout) == (1, "nightly: removed\n")
    assert removed.stderr.startswith("Error: there is no schedule 'other' in this run")
    run_cli("worker", "app:queue", "--until-empty")
    assert schedule("ls").stderr == "no schedules\n"
    assert schedule("run", "nightly").returncode == 1

    brought_back = schedule("resume", "nightly")
    assert "it was removed, and does not tick yet" in brought_back.stdout
    run_cli("worker", "app:queue", "--until-empty")
    assert "nightly" in schedule("ls").stdout
