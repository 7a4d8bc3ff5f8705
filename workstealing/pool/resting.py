"""Where workers rest that have nothing to do, without spinning, until someone rings.

A worker first lies down, then looks around once more, then sleeps. Whoever gives work
first puts it in place, then rings. So one of the two always sees the other.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock

__all__ = ("Bell", "Resting")


class Bell:
    """Wakes one worker."""

    __slots__ = ("_lock", "owner")

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self._lock = Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake the owner, now or as soon as it sleeps; twice is as good as once."""
        with suppress(RuntimeError):
            self._lock.release()

    def sleep(self, seconds: float | None) -> bool:
        """Sleep until it rings; False if that many seconds have passed."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)


class Resting:
    """The bells of those who rest. The last to lie down is the first to be woken.

    So that those who are not needed rest long enough to be let go.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._bells: list[Bell] = []

    def __len__(self) -> int:
        return len(self._bells)

    @property
    def next_up(self) -> int | None:
        """Whom the next ring will wake, as far as one can tell; a hint."""
        bells = self._bells
        try:
            return bells[-1].owner if bells else None
        except IndexError:
            return None

    def lie_down(self, bell: Bell) -> None:
        """Rest; the caller must look around once more, and then sleep or get up."""
        with self._lock:
            self._bells.append(bell)

    def sleep(self, bell: Bell, seconds: float | None) -> bool:
        """Sleep until it rings, and get up; False if that many seconds have passed."""
        if not bell.sleep(seconds):
            self.get_up(bell)
            return False
        # Only `ring_unlocked` leaves it there.
        if bell in self._bells:
            with self._lock, suppress(ValueError):
                self._bells.remove(bell)
        return True

    def get_up(self, bell: Bell) -> None:
        """Stop resting without having heard the bell."""
        with self._lock:
            if bell in self._bells:
                self._bells.remove(bell)
                return
        # It rang meanwhile.
        bell.sleep(None)

    def ring(self) -> bool:
        """Wake one; False if nobody rests."""
        # Seen without the lock: who lay down and then looked into the deque that the
        # work was put into, did both before.
        if not self._bells:
            return False
        with self._lock:
            if not self._bells:
                return False
            self._bells.pop().ring()
            return True

    def ring_for(self, bell: Bell) -> None:
        """Wake one in particular, if it rests."""
        with self._lock:
            if bell in self._bells:
                self._bells.remove(bell)
                bell.ring()

    def ring_for_all(self) -> None:
        """Wake everyone."""
        with self._lock:
            while self._bells:
                self._bells.pop().ring()

    def ring_unlocked(self) -> None:
        """Wake everyone, from where no lock may be taken."""
        for bell in tuple(self._bells):
            bell.ring()
