"""What was accepted and what was done, in files that no fault meets.

Each process appends to a file of its own, a line at a time, so a SIGKILL leaves whole
lines. A line is the time, a word and what it is about, with tabs between them.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

__all__ = ("Entry", "Ledger")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line."""

    at: float
    words: tuple[str, ...]


class Ledger:
    """Takes notes in a folder, and reads those of all processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owner = 0
        self._file = -1

    def note(self, event: str, *words: object) -> float:
        """Append a line, at once; return the time that it has."""
        if self._owner != os.getpid():
            # A forked child must not write into the middle of its parent's lines.
            self._owner = os.getpid()
            name = f"{self._owner}-{time.time_ns()}.tsv"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._file = os.open(self._folder / name, flags, 0o600)
        now = round(time.time(), 3)
        line = "\t".join((f"{now:.3f}", event, *map(_flat, words)))
        os.write(self._file, f"{line}\n".encode())
        return now

    def read(self) -> dict[str, list[Entry]]:
        """Return all lines by their event, in the order of time."""
        events: dict[str, list[Entry]] = defaultdict(list)
        for file in self._folder.glob("*.tsv"):
            for line in file.read_text().splitlines():
                at, event, *words = line.split("\t")
                events[event].append(Entry(float(at), tuple(words)))
        for entries in events.values():
            entries.sort(key=lambda entry: entry.at)
        return events


def _flat(word: object) -> str:
    return " ".join(str(word).split())
