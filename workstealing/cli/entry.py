"""The entry point of the command `workstealing`; needs nothing but Python to start."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from workstealing.errors import MissingExtra

__all__ = ("INTERRUPTED", "main", "require_extra")

INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit with 1 if its extra is not installed."""
    try:
        require_extra("cli", "click", "rich")
    except MissingExtra as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None
    try:
        from workstealing.cli.commands import workstealing
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    workstealing(prog_name="workstealing")


def require_extra(extra: str, *packages: str) -> None:
    """Raise `MissingExtra` for the first of its packages that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, extra)
