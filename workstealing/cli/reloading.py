"""Notices that the code has changed, by looking at the files twice a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import TracebackType

__all__ = ("Reloading",)

_LOOK_SECONDS = 0.5


class Reloading:
    """Looks while it is entered.

    Args:
        folder: modules that were imported from below it are looked at.
        changed: is called with the files that are different.
    """

    def __init__(self, folder: Path, changed: Callable[[list[Path]], None]) -> None:
        self._folder = folder.resolve()
        self._changed = changed
        self._ending = Event()
        self._thread = Thread(target=self._live, name="reloading", daemon=True)
        self._seen = self._look()

    def __enter__(self) -> Reloading:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._ending.wait(_LOOK_SECONDS):
            now = self._look()
            changed = [
                path for path, at in now.items() if self._seen.get(path, at) != at
            ]
            self._seen = now
            if changed:
                self._changed(changed)

    def _look(self) -> dict[Path, int]:
        seen: dict[Path, int] = {}
        for module in tuple(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if not file:
                continue
            path = Path(file).resolve()
            if self._folder in path.parents and "site-packages" not in path.parts:
                try:
                    seen[path] = path.stat().st_mtime_ns
                except OSError:
                    # It is being replaced; the next look finds it.
                    continue
        return seen
