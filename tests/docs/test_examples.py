"""Every example runs as its README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from redis import Redis

from workstealing import jobs
from workstealing.testing import Server

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(main.parent.name for main in FOLDER.glob("*/main.py"))
JOBS = {
    name
    for name in jobs.__all__
    if hasattr(getattr(jobs, name), "recruited") and not name.startswith("Async")
}
ROW = re.compile(r"^│ (\w+) +│ (\d+) +│ (\d+) +│ (\d+) of (\d+) ", re.MULTILINE)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def run(redis_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run an example in an empty folder; the same run is not repeated."""

    @cache
    def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", str(FOLDER / name / "main.py"), *options],
            cwd=tmp_path_factory.mktemp(name),
            env={**os.environ, "WORKSTEALING_URL": redis_server.url, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    "name",
    [
        name if name == "first_task" else pytest.param(name, marks=pytest.mark.slow)
        for name in EXAMPLES
    ],
)
def test_an_example_runs_to_its_end(name: str, run: Run) -> None:
    done = run(name, *_short(name))

    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_readme_of_an_example_names_its_command(name: str) -> None:
    readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")

    assert f"python examples/{name}/main.py" in readme


def test_housekeeping_makes_the_backlog_of_every_job_smaller(run: Run) -> None:
    table = run("redis_housekeeping", *_short("redis_housekeeping")).stdout

    rows = {name: tuple(map(int, counts)) for name, *counts in ROW.findall(table)}
    assert rows.keys() == JOBS
    for name, (heap, now, slices, drawn) in rows.items():
        assert now < heap, name
        assert 0 < slices <= drawn, name


def test_housekeeping_leaves_no_keys_behind(run: Run, redis_client: Redis) -> None:
    run("redis_housekeeping", *_short("redis_housekeeping"))

    assert list(redis_client.scan_iter("*housekeeping*", count=1000)) == []


def test_housekeeping_fails_if_it_had_no_time_for_its_work(run: Run) -> None:
    done = run("redis_housekeeping", "--seconds", "0")

    assert done.returncode == 1
    assert {name for name, *_ in ROW.findall(done.stdout)} == JOBS


def _short(name: str) -> tuple[str, ...]:
    program = (FOLDER / name / "main.py").read_text(encoding="utf-8")
    return ("--seconds", "5") if '"--seconds"' in program else ()
