"""The entry point of the command `workstealing`; needs nothing but Python to start."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from workstealing.errors import MissingExtra

__all__ = ("INTERRUPTED", "main", "require_extra")

INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit with 1 if its extra is not installed."""
    _open_closed_streams()
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


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Python has None instead of such a stream, which no library expects. And a socket
    that got the free descriptor would be sent what child processes print.
    """
    for name, mode in ("stdin", "r"), ("stdout", "w"), ("stderr", "w"):
        if getattr(sys, name) is None:
            # In this order, each gets its usual descriptor: the lowest that is free.
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
