"""A short soak on a single server; `make soak` is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
