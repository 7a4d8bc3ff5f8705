"""When a worker of several queues that ends "until empty" has nothing left in any.

A task of one queue may submit to another that was seen empty before. So all of them are
looked at once more after the last of them became empty.
"""

from __future__ import annotations

from threading import Lock

__all__ = ("AllEmpty",)


class AllEmpty:
    """What the loops of a worker have seen of their queues.

    Args:
        queues: how many there are.
    """

    def __init__(self, queues: int) -> None:
        self._mutex = Lock()
        # Counts how often a queue became empty.
        self._round = 0
        self._known = [0] * queues
        self._confirmed: list[int | None] = [None] * queues
        self._is_over = False

    def has_tasks(self, place: int) -> None:
        """Note that a queue is not empty."""
        self._confirmed[place] = None

    def seems_so(self) -> bool:
        """Return whether all were seen empty, if not at the same time."""
        return None not in self._confirmed

    def sees(self, place: int, *, is_empty: bool) -> bool:
        """Note what a loop has just seen of its queue; return whether it may end."""
        with self._mutex:
            if not is_empty:
                self.has_tasks(place)
                return False
            if self._confirmed[place] is None:
                self._round += 1
                self._confirmed[place] = 0
            else:
                # It looked after it had last been here, and maybe not much later.
                self._confirmed[place] = self._known[place]
            self._known[place] = self._round
            if all(one == self._round for one in self._confirmed):
                self._is_over = True
            return self._is_over
