"""With how many workers `workstealing worker` begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from workstealing import WorkerPool
from workstealing.cli import worker_command

CODE = """
from workstealing import TaskQueue

queue = TaskQueue("numbers", "redis://127.0.0.1:1/0")
"""


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [
        ([], 4),
        (["--workers", "3"], 3),
        (["--autoscale", "1:4"], 1),
        (["--autoscale", "6:8"], 6),
        (["--autoscale", "1:4", "--workers", "3"], 3),
        (["--autoscale", "1:4", "--workers", "4"], 4),
        (["--autoscale", "1:2", "--workers", "4"], 2),
    ],
)
def test_a_pool_that_scales_begins_with_the_least_unless_it_is_told_otherwise(
    arguments: list[str],
    workers: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = f"numbers_{abs(hash(tmp_path))}"
    (tmp_path / f"{module}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made: list[WorkerPool] = []
    monkeypatch.setattr(worker_command, "run_pool", lambda pool, **_: made.append(pool))

    ended = CliRunner().invoke(
        worker_command.worker_command, [f"{module}:queue", *arguments]
    )

    assert ended.exit_code == 0, ended.output
    assert [pool.workers for pool in made] == [workers]
