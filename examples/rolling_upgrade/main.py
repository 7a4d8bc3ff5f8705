"""A deployment without a pause: old workers, then both, then new ones only.

`python examples/rolling_upgrade/main.py` ends by itself in some ten seconds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from releases import greet_1, greet_2, queue_1

OLD_PAYLOADS = [("Ada Lovelace",)] * 100
NEW_PAYLOADS = [("Ada", "Lovelace")] * 100
PENDING = ("waiting", "assigned", "running")


def main() -> int:
    """Simulate the deployment, and count."""
    before = queue_1.counts().stats
    old, new = start(1), None
    try:
        print("1. Only old workers:")
        tell(greet_1.submit_many(OLD_PAYLOADS))

        print("\n2. The web servers are new already, and call version 2:")
        early = greet_2.submit("Grace", "Hopper")
        while str(early.state()).startswith(PENDING):
            time.sleep(0.05)
        print(f"   {early.state()}")

        print("\n3. A new worker comes:")
        new = start(2)
        tell([early])

        print("\n4. Old and new workers, tasks of both versions:")
        both = greet_1.submit_many(OLD_PAYLOADS) + greet_2.submit_many(NEW_PAYLOADS)
        tell(both)

        print("\n5. The old worker is told to go, while it holds tasks:")
        last = greet_1.submit_many(OLD_PAYLOADS)
        last[20].result(timeout=30)
        old.terminate()
        tell(last)
    finally:
        for process in (old, new):
            if process is not None:
                process.terminate()
                process.wait()
    after = queue_1.counts().stats
    done, dead = (after.get(key, 0) - before.get(key, 0) for key in ("done", "dead"))
    print(f"\nsubmitted 401, done {done}, failed {dead}")
    return 0 if (done, dead) == (401, 0) else 1


def start(release: int) -> subprocess.Popen[bytes]:
    """Start a worker of a release."""
    program = str(Path(__file__).with_name("releases.py"))
    return subprocess.Popen([sys.executable, program, str(release)])  # noqa: S603


def tell(handles: list[Any]) -> None:
    """Wait for tasks, and print how they were done."""
    results = Counter(handle.result(timeout=30) for handle in handles)
    for result, times in sorted(results.items()):
        print(f"   {times:>3} × {result}")


if __name__ == "__main__":
    raise SystemExit(main())
