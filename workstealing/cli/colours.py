"""Which colours mean what on a terminal; the terminal decides how they look."""

from __future__ import annotations

from workstealing.cli.tables import Paint

__all__ = ("ALARM", "GOOD", "HEADING", "NOTICE", "QUIET", "state_style", "unless_zero")

ALARM, NOTICE, GOOD, QUIET, HEADING = "red", "yellow", "green", "dim", "bold"

_STATES = {
    "running": "cyan",
    "done": GOOD,
    "failed": ALARM,
    "dead": ALARM,
    "delayed": NOTICE,
    "parked": NOTICE,
    "paused": NOTICE,
    "cancelled": QUIET,
    "expired": QUIET,
    "idle": QUIET,
}


def state_style(state: str) -> str:
    """Return the style of a state of a task or a worker, such as `dead for 2 s`."""
    return _STATES.get(state.partition(" ")[0], "")


def unless_zero(style: str) -> Paint:
    """Paint numbers in a style, if they are not zero."""
    return lambda cell: style if cell.strip("0.,- ") else QUIET
