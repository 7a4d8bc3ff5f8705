"""A short soak on a single server; `make soak` is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak.plan import make_plan

_ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_promises_are_kept_by_a_fleet_in_random_faults() -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "soak", "--minutes", "0.2"),
            *("--seed", "7", "--server", "single"),
        ],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "every promise was kept" in run.stdout


def test_the_seed_gives_the_same_faults_again() -> None:
    plan = make_plan(7, "single", 600)

    assert plan == make_plan(7, "single", 600)
    assert plan != make_plan(8, "single", 600)
    assert {fault.track for fault in plan} == {"processes", "network", "servers"}
