"""Randomness that a test has written down beforehand."""

from __future__ import annotations

from collections import deque

__all__ = ("ScriptedChance",)


class ScriptedChance:
    """Returns *numbers* one by one, and fails the test when they are used up."""

    def __init__(self, *numbers: float) -> None:
        for number in numbers:
            if not 0.0 <= number < 1.0:
                raise ValueError(f"a chance is from 0.0 to below 1.0, not {number!r}")
        self._length = len(numbers)
        self._numbers = deque(numbers)

    @property
    def left(self) -> int:
        """Count the numbers that were not drawn yet."""
        return len(self._numbers)

    def random(self) -> float:
        """Return the next number of the script."""
        if not self._numbers:
            raise AssertionError(
                f"all {self._length} scripted numbers are drawn, and one more is wanted"
            )
        return self._numbers.popleft()
