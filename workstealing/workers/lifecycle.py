"""How far along a worker or a pool is: one protocol for all that runs.

It only ever goes forward, from working to ending.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ("HAND_BACK_SECONDS", "STOP_SECONDS", "Phase")

STOP_SECONDS = 25.0
"""How long what runs may go on after a stop: less than most supervisors wait."""

HAND_BACK_SECONDS = 1.0
"""How often one that takes no more hands back: others may feed it, not knowing."""


class Phase(IntEnum):
    """What whoever leads a life does next."""

    WORKING = 0
    """Takes tasks and runs them."""
    QUIET = 1
    """Takes no more, has handed back what waits; what runs goes on."""
    STOPPING = 2
    """Ends as soon as what runs has finished."""
    ENDING = 3
    """Ends now, and hands back what runs."""
