"""Reloads a worker's code when one of its files changes, for `worker --reload`.

Files are checked twice a second. Code that cannot be imported is reported, and the old
code stays in use.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread

from workstealing._printing import escaping_logger

__all__ = ("CodeWatch",)

logger = escaping_logger(__name__)

_CHECK_SECONDS = 0.5


class CodeWatch:
    """Watches the imported modules while it is entered.

    Args:
        folder: modules that were imported from below it are watched.
        modules: the application; they must still be importable after a change.
        reload: called after a change.
    """

    def __init__(
        self, folder: Path, modules: Sequence[str], reload: Callable[[], None]
    ) -> None:
        self._folder = folder.resolve()
        self._modules = modules
        self._reload = reload
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="reloading", daemon=True)
        self._times = self._modification_times()

    def __enter__(self) -> CodeWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_CHECK_SECONDS):
            now, before = self._modification_times(), self._times
            changed = [path for path, at in now.items() if before.get(path, at) != at]
            self._times = now
            if changed:
                self._changed(changed)

    def _changed(self, files: list[Path]) -> None:
        names = ", ".join(path.name for path in files)
        problem = _import_problem(self._modules)
        if problem is None:
            logger.info("%s changed: reloading", names)
            self._reload()
        else:
            logger.error(
                "%s changed, but cannot be imported; keeping the old code: %s",
                names,
                problem,
            )

    def _modification_times(self) -> dict[Path, int]:
        times: dict[Path, int] = {}
        for module in tuple(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if not file:
                continue
            path = Path(file).resolve()
            if self._folder in path.parents and "site-packages" not in path.parts:
                try:
                    times[path] = path.stat().st_mtime_ns
                except OSError:
                    # It is being replaced; the next check finds it.
                    continue
        return times


def _import_problem(modules: Sequence[str]) -> str | None:
    """Import the code in a separate process; return what is wrong with it."""
    code = f"import sys; sys.path.insert(0, ''); import {', '.join(modules)}"
    ended = subprocess.run(  # noqa: S603 - the modules that this worker runs
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if ended.returncode == 0:
        return None
    lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
    place = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    return f"{lines[-1]} ({place[-1]})" if place else lines[-1]
