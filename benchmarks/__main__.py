"""`python -m benchmarks [name …]`: measure the budgets, all or the named ones."""

from __future__ import annotations

import platform
import sys
from importlib import import_module

from benchmarks.measuring import report

ALL = (
    *("recruiting", "pool", "queue", "drains", "pools"),
    *("client", "stealing", "jobs", "web", "brief", "fleet", "scale"),
)


def main() -> int:
    """Run the benchmarks one after the other; fail if a budget is missed."""
    names = sys.argv[1:] or ALL
    print(f"Python {platform.python_version()}, {platform.machine()}")
    is_kept = True
    for name in names:
        print(f"\n{name}")
        is_kept = report(import_module(f"benchmarks.{name}").measure()) and is_kept
    return 0 if is_kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
