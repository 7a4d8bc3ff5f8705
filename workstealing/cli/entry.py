"""The entry point of the command `workstealing`; needs nothing but Python to start."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from workstealing.errors import MissingExtra

__all__ = ("main",)

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit with 1 if its extra is not installed."""
    for package in ("click", "rich"):
        if find_spec(package) is None:
            sys.stderr.write(f"{MissingExtra(package, 'cli')}\n")
            raise SystemExit(1)
    try:
        from workstealing.cli.commands import workstealing
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    workstealing(prog_name="workstealing")
