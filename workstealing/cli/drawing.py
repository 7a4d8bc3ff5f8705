"""Draws what an inspector saw: trees, and lists of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workstealing.cli.sheets import Sheet
from workstealing.inspecting.values import Entry, Node
from workstealing.inspecting.wording import printable, span

__all__ = ("entries_sheet", "tree_lines")

_WIDEST_NAME = 46


def tree_lines(root: Node) -> list[str]:
    """Draw folders and files as the command `tree` does, with notes at the side."""
    drawn = list(_branches(root, "", ""))
    noted = [len(line) for line, note in drawn if note]
    column = min(_WIDEST_NAME, max(noted, default=0) + 2)
    return [
        f"{line.ljust(column)} <---- {note}" if note else line for line, note in drawn
    ]


def _branches(node: Node, before: str, below: str) -> Iterator[tuple[str, str]]:
    yield f"{before}{printable(node.name)}", printable(node.note)
    for number, child in enumerate(node.children, 1):
        if number == len(node.children):
            yield from _branches(child, f"{below}└── ", f"{below}    ")
        else:
            yield from _branches(child, f"{below}├── ", f"{below}│   ")


def entries_sheet(entries: Sequence[Entry], now_ms: int) -> Sheet:
    """Draw a list of tasks."""
    made = Sheet(
        ("id", "task", "state", "worker", "when", "note"),
        right=("when",),
        prose=("note",),
    )
    for entry in entries:
        told = [entry.note] if entry.note else []
        told += [f"{entry.attempts} failed"] if entry.attempts else []
        told += [f"{entry.deaths} died"] if entry.deaths else []
        told += [f"stolen {entry.steals} ×"] if entry.steals else []
        made.add(
            entry.id,
            entry.task,
            entry.state.value,
            entry.worker,
            _when(entry.at_ms, now_ms),
            ", ".join(told),
        )
    return made


def _when(at_ms: int, now_ms: int) -> str:
    if not at_ms:
        return ""
    return f"in {span(at_ms - now_ms)}" if at_ms > now_ms else f"{span(now_ms - at_ms)}"
