"""Draws what an inspector saw: trees, tables and texts that are safe to print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from workstealing.inspecting.values import Entry, Node
from workstealing.inspecting.wording import span

__all__ = ("entries_table", "printable", "table", "tree_lines")

_WIDEST_NAME = 46


def printable(text: str) -> str:
    """Return a text that does nothing to a terminal but stand there.

    Names, ids and messages may come from anywhere.
    """
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


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


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """Make a table in the style of all commands; *right* names columns of numbers."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify = "right" if column in right else "left"
        made.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return made


def entries_table(entries: Sequence[Entry], now_ms: int) -> Table:
    """Draw a list of tasks."""
    made = table("id", "task", "state", "worker", "when", "note", right=("when",))
    for entry in entries:
        told = [entry.note] if entry.note else []
        told += [f"{entry.attempts} failed"] if entry.attempts else []
        told += [f"{entry.deaths} died"] if entry.deaths else []
        told += [f"stolen {entry.steals} ×"] if entry.steals else []
        cells = (
            entry.id,
            entry.task,
            entry.state.value,
            entry.worker,
            _when(entry.at_ms, now_ms),
            ", ".join(told),
        )
        made.add_row(*map(printable, cells))
    return made


def _when(at_ms: int, now_ms: int) -> str:
    if not at_ms:
        return ""
    return f"in {span(at_ms - now_ms)}" if at_ms > now_ms else f"{span(now_ms - at_ms)}"
