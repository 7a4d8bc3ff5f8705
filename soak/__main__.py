"""`python -m soak [--minutes 10] [--seed N] [--server single|sentinel|cluster]`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import SystemRandom

from soak.faults import Faults
from soak.fleet import Fleet
from soak.plan import Fault, make_plan
from soak.stage import STAGES, Stage
from workstealing.testing import wait_until

__all__ = ()

_START_SECONDS = 60.0
_CALM_SECONDS = 180.0


def main() -> int:
    """Soak; 1 if a promise was broken."""
    options = _options()
    plan = make_plan(options.seed, options.server, options.minutes * 60)
    _say(f"soak of {options.minutes:g} min on {options.server}, seed {options.seed}")
    if options.plan:
        _say("\n".join(map(str, plan)))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    stage = STAGES[options.server]()
    try:
        is_kept = _soak(stage, plan, folder, options.seed)
    finally:
        stage.stop()
    if is_kept:
        shutil.rmtree(folder)
    else:
        _say(f"ledger and logs: {folder}")
    return 0 if is_kept else 1


def _soak(stage: Stage, plan: list[Fault], folder: Path, seed: int) -> bool:
    stage.start()
    settings = {
        "SOAK_URL": stage.url,
        "SOAK_LEDGER": str(folder),
        "SOAK_REPLICAS": str(stage.replicas),
        "SOAK_SHARDS": str(stage.shards),
    }
    os.environ.update(settings)
    # They read the environment, as the fleet does.
    from soak import app
    from soak.bill import make_bill
    from soak.calm import calm_down
    from soak.leftovers import check_leftovers, memory_in_use

    baseline = memory_in_use(stage)
    fleet = Fleet(folder, seed, settings, stage.seconds_without_replica)
    faults = Faults(plan, stage, fleet)
    began = time.monotonic()
    try:
        fleet.start()
        # On a busy machine a short soak would be over before anybody had begun.
        wait_until(
            lambda: {"accepted", "ended"} <= app.ledger.read().keys(),
            _START_SECONDS,
            "the first task to be done",
        )
        faults.run()
        stuck = calm_down(fleet, _CALM_SECONDS)
        left = fleet.wait_for_none(30.0)
    finally:
        fleet.end()
    bill = make_bill(stage)
    check_leftovers(bill, stage, baseline)
    bill.notes |= fleet.memory.longest()
    bill.check("no process grows on and on", fleet.memory.grown())
    bill.broken += [*stuck, *fleet.broken, *faults.failed]
    bill.check("no process outlives its parent", left)
    _say(f"\n{time.monotonic() - began:.0f} s, {len(faults.done)} faults")
    _table("faults", Counter(fault.name for fault in faults.done))
    _table(f"{bill.ends.total():,} accepted tasks", bill.ends)
    _table("besides", bill.notes)
    _say("\n" + "\n".join(f"BROKEN  {one}" for one in bill.broken) or "")
    _say("every promise was kept" if not bill.broken else f"seed {seed} fails")
    return not bill.broken


def _table(title: str, rows: Counter[str] | dict[str, object]) -> None:
    _say(f"\n{title}")
    for name, value in rows.items():
        _say(f"  {name:<28} {value}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10_000))
    parser.add_argument("--server", choices=list(STAGES), default="single")
    parser.add_argument("--plan", action="store_true", help="only show what is planned")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
