"""`workstealing schedule`: list, pause, resume, run and remove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def test_an_operator_looks_at_schedules_and_steers_them(
    app: Path, run_cli: Any, redis_server: Server, key_prefix: str
) -> None:
    code = (app / "app.py").read_text()
    (app / "app.py").write_text(code + _MORE.replace("\n    ", "\n"))
    named = ("--queue", key_prefix, "--redis", redis_server.url)

    nothing = run_cli("schedule", "ls", *named)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert f"there is no queue {key_prefix}/default" in nothing.stderr
    with TaskQueue(key_prefix, redis_server.url) as queue:
        queue.pause("say")
    assert run_cli("schedule", "ls", *named).stderr == "no schedules\n"
    with TaskQueue(key_prefix, redis_server.url) as queue:
        queue.resume("say")
    run_cli("worker", "app:queue", "--until-empty")
    listed = run_cli("schedule", "ls", *named)
    assert "nightly   say@1  0 3 * * * Europe/Berlin  in " in listed.stdout
    (row,) = json.loads(run_cli("schedule", "ls", "--json", *named).stdout)
    assert (row["name"], row["origin"], row["fired"]) == ("nightly", "code", 0)

    assert run_cli("schedule", "pause", *named, "nightly").stdout == "nightly: paused\n"
    again = run_cli("schedule", "pause", *named, "nightly")
    assert again.stdout == "nightly: was paused before\n"
    assert "  paused  " in run_cli("schedule", "ls", *named).stdout
    resumed = run_cli("schedule", "resume", "app:queue", "nightly")
    assert resumed.stdout == "nightly: resumed\n"
    resumed = run_cli("schedule", "resume", *named, "nightly")
    assert (resumed.returncode, resumed.stdout) == (1, "")
    assert resumed.stderr == "Error: nightly is not paused\n"

    ran = run_cli("schedule", "run", *named, "nightly").stdout.strip()
    assert ran.startswith("nightly@20")
    run_cli("worker", "app:queue", "--until-empty")
    with TaskQueue(key_prefix, redis_server.url) as queue:
        assert queue.handle(ran).result(timeout=5) == "x"

    removed = run_cli("schedule", "rm", *named, "nightly", "other")
    assert removed.stdout == "nightly: removed\n"
    assert removed.returncode == 1
    assert removed.stderr.startswith("Error: there is no schedule 'other' in this run")
    run_cli("worker", "app:queue", "--until-empty")
    assert run_cli("schedule", "ls", *named).stderr == "no schedules\n"
    assert run_cli("schedule", "run", *named, "nightly").returncode == 1
    assert run_cli("schedule", "pause", *named).returncode == 2
    assert run_cli("schedule", "pause", *named, "a b").returncode == 2
    brought_back = run_cli("schedule", "resume", *named, "nightly")
    assert "it was removed, and does not tick yet" in brought_back.stdout
    run_cli("worker", "app:queue", "--until-empty")
    assert "nightly" in run_cli("schedule", "ls", *named).stdout
    with TaskQueue(key_prefix, redis_server.url) as queue:
        internals = internals_of(queue)
        internals.driver.client.zadd(internals.keys.ticks, {"nightly": 1000})
    assert "overdue: nobody fires it" in run_cli("schedule", "ls", *named).stdout
