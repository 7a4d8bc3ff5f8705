"""Whom to rob: the richer of two victims drawn at random.

Nearly as balanced as looking at everybody, at a constant cost. The draw itself is made
by Redis, among those who have something.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ("choose_victim",)


def choose_victim(drawn: Sequence[tuple[str, int]], thief: str) -> str | None:
    """Return the richer of the first two that are not the thief itself."""
    others = [(load, worker) for worker, load in drawn if worker != thief and load > 0]
    return max(others[:2])[1] if others else None
