"""Draws folders and files as the command `tree` does."""

from __future__ import annotations

from collections.abc import Iterator

from workstealing._printing import on_one_line
from workstealing.inspecting import TreeNode

__all__ = ("tree_lines",)

_WIDEST_NAME = 46


def tree_lines(root: TreeNode) -> list[str]:
    """Draw folders and files, with notes at the side."""
    drawn = list(_branches(root, "", ""))
    noted = [len(line) for line, note in drawn if note]
    column = min(_WIDEST_NAME, max(noted, default=0) + 2)
    return [
        f"{line.ljust(column)} <---- {note}" if note else line for line, note in drawn
    ]


def _branches(node: TreeNode, before: str, below: str) -> Iterator[tuple[str, str]]:
    yield f"{before}{on_one_line(node.name)}", on_one_line(node.note)
    for number, child in enumerate(node.children, 1):
        if number == len(node.children):
            yield from _branches(child, f"{below}└── ", f"{below}    ")
        else:
            yield from _branches(child, f"{below}├── ", f"{below}│   ")
