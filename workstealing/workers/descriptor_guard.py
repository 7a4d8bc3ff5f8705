"""Notices when a task has closed file descriptors that are not its own.

After `os.closerange()` in a task no connection and no event loop of the worker can be
trusted: their numbers are soon given to other files.
"""

from __future__ import annotations

import os

from workstealing.errors import PoolBroken

__all__ = ("DescriptorGuard",)


class DescriptorGuard:
    """An open file that nobody uses: it is gone if a task closed all it could.

    Args:
        worker: its name, for the error.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._file: tuple[int, os.stat_result] | None = None

    def open(self) -> None:
        """Open the file."""
        # A pipe, for no other file is the same as it.
        reading, writing = os.pipe()
        os.close(writing)
        self._file = (reading, os.fstat(reading))

    def check(self, cause: BaseException | None = None) -> None:
        """Raise `PoolBroken` if the file is gone, from an error that this explains."""
        if not self._is_intact():
            raise PoolBroken(
                "a task has closed file descriptors that are not its own, so worker"
                f" {self._worker} ends; other workers take over its tasks when its"
                " lease ends"
            ) from cause

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and self._is_intact():
            os.close(self._file[0])
        self._file = None

    def _is_intact(self) -> bool:
        if self._file is None:
            return True
        number, before = self._file
        try:
            return os.path.samestat(os.fstat(number), before)
        except OSError:
            return False
