"""A virtual environment per library, made once and used again.

Libraries ask for versions of redis-py that exclude each other: they cannot share one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.peers.catalogue import OURS, Library

__all__ = ("NotInstalled", "install", "python_of")

_READY = "installed"


class NotInstalled(Exception):
    """A library could not be installed; the message has pip's last words."""


def python_of(root: Path, library: Library) -> Path:
    """Return the interpreter of a library."""
    return _folder(root, library) / "bin" / "python"


def install(root: Path, library: Library) -> None:
    """Install a library below *root*, unless just this has been installed before.

    Raises:
        NotInstalled: pip or venv failed.
    """
    ready = _folder(root, library) / _READY
    wanted = "\n".join(library.requirements)
    if ready.exists() and ready.read_text(encoding="utf-8") == wanted:
        return
    _run(library, [sys.executable, "-m", "venv", "--clear", str(ready.parent)])
    _run(
        library,
        [
            *(str(python_of(root, library)), "-m", "pip", "install", "--quiet"),
            "--disable-pip-version-check",
            *_arguments(root, library),
        ],
    )
    ready.write_text(wanted, encoding="utf-8")


def _arguments(root: Path, library: Library) -> list[str]:
    if library.name != OURS:
        return list(library.requirements)
    others = [one for one in library.requirements if one != OURS]
    return ["--editable", str(root), *others]


def _folder(root: Path, library: Library) -> Path:
    return root / ".venv-peers" / library.name


def _run(library: Library, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise NotInstalled(f"{library.title} was not installed: {last[0]}")
