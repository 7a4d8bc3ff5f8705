"""A short soak on a single server; `make soak` is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak.crowding import Crowding, look_for_crowds
from soak.ledger import Entry
from soak.plan import make_plan

_ROOT = Path(__file__).parents[2]
_SEED, _MINUTES = 46, 0.4


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_promises_are_kept_by_a_fleet_in_random_faults() -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "soak", "--minutes", str(_MINUTES)),
            *("--seed", str(_SEED), "--server", "single"),
        ],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "every promise was kept" in run.stdout


def test_the_seed_gives_the_same_faults_again() -> None:
    plan = make_plan(_SEED, "single", _MINUTES * 60)

    assert plan == make_plan(_SEED, "single", _MINUTES * 60)
    assert plan != make_plan(_SEED + 1, "single", _MINUTES * 60)
    # Something happens to each of them also in so short a soak.
    assert {fault.track for fault in plan} == {"processes", "network", "servers"}


def test_more_at_once_than_a_limit_allows_is_found_by_the_tasks_own_notes() -> None:
    runs = {"a": (1.0, 3.0), "b": (2.0, 4.0), "c": (3.0, 5.0), "d": (3.9, 4.1)}
    results = {f"task {run}": run for run in runs}

    crowding = crowding_of(runs, results)
    assert crowding.crowds == ["3 of key at 3.900"]
    assert crowding.begins == {1: 1, 2: 2, 3: 1}

    # The worker of this run was taken for dead, or killed.
    crowding = crowding_of(runs, results | {"task b": "other run"})
    assert not crowding.crowds
    assert crowding.uncounted == 1


def crowding_of(
    runs: dict[str, tuple[float, float]], results: dict[str, str]
) -> Crowding:
    events = {
        "began": [
            Entry(began, (f"task {run}", "seated", run, "worker", "key"))
            for run, (began, _) in runs.items()
        ],
        "ended": [
            Entry(ended, (f"task {run}", "seated", run))
            for run, (_, ended) in runs.items()
        ],
    }
    return look_for_crowds(events, results, {"seated": 2})["seated"]
