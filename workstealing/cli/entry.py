"""Where the command `workstealing` begins: it checks its extra, then hands over."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from workstealing.errors import MissingExtra

__all__ = ("main",)


def main() -> None:
    """Run the command line; exit with 1 if its packages are not installed."""
    for package in ("click", "rich"):
        if find_spec(package) is None:
            sys.stderr.write(f"{MissingExtra(package, 'cli')}\n")
            raise SystemExit(1)
    from workstealing.cli.commands import workstealing

    workstealing(prog_name="workstealing")
