"""Tables for people and for pipes: no id and no name is ever broken.

On a terminal only columns of prose are folded, or set below their rows if names leave
no room for them; a table whose names are wider than the terminal stays whole, and the
terminal wraps it. In a pipe a row is one line however
long, columns stand two spaces apart, and an empty cell is a dash, so that `grep` and
`awk` find what they look for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from workstealing.inspecting.wording import printable

__all__ = ("Part", "Sheet", "drawn", "plain_lines", "show")

_GAP = 2
# A column of prose that is narrower cannot be read.
_NARROWEST_PROSE = 24


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table in the making."""

    columns: Sequence[str]
    right: Sequence[str] = ()
    """Columns of numbers."""
    prose: Sequence[str] = ()
    """Columns that may be folded."""
    rows: list[tuple[str, ...]] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    """Lines that stand below."""

    def add(self, *cells: str) -> None:
        """Add a row; what its cells hold may come from anywhere."""
        self.rows.append(tuple(map(printable, cells)))

    def widths(self) -> list[int]:
        """Return how wide each column must be to break nothing."""
        rows = (self.columns, *self.rows)
        return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


Part = Sheet | str
"""What a page is made of: tables and lines."""


def show(parts: Sequence[Part], console: Console) -> None:
    """Print a page, as its reader likes it: a person or a program."""
    if console.is_terminal:
        console.print(drawn(parts, console.width), soft_wrap=True)
        return
    for line in plain_lines(parts):
        click.echo(line)


def drawn(parts: Sequence[Part], width: int) -> Group:
    """Return a page for a terminal of a width."""
    return Group(*(piece for part in parts for piece in _pieces(part, width)))


def plain_lines(parts: Sequence[Part]) -> Iterator[str]:
    """Return a page for a pipe, line by line."""
    for part in parts:
        if isinstance(part, str):
            yield from printable(part).splitlines() or [""]
            continue
        widths = part.widths()
        yield _line(part, part.columns, widths)
        for row in part.rows:
            one_line = [" ".join(cell.split()) or "-" for cell in row]
            yield _line(part, one_line, widths)
        yield from part.more


def _pieces(part: Part, width: int) -> Iterator[RenderableType]:
    if isinstance(part, str):
        yield Text(printable(part))
        return
    widths = dict(zip(part.columns, part.widths(), strict=True))
    whole = sum(widths[name] + _GAP for name in part.columns if name not in part.prose)
    needed = sum(min(_NARROWEST_PROSE, widths[name]) for name in part.prose)
    if part.prose and whole + needed > width:
        yield from _with_prose_below(part)
    else:
        yield _table(part, None if part.prose or whole <= width else whole)
    yield from map(Text, part.more)


def _table(sheet: Sheet, width: int | None) -> Table:
    # The gap is the padding and what the box puts between columns.
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), width=width
    )
    for column in sheet.columns:
        is_prose = column in sheet.prose
        table.add_column(
            column,
            justify="right" if column in sheet.right else "left",
            overflow="fold",
            no_wrap=not is_prose,
        )
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    return table


def _with_prose_below(sheet: Sheet) -> Iterator[RenderableType]:
    names = [name for name in sheet.columns if name not in sheet.prose]
    short = Sheet(names, right=sheet.right)
    below = []
    for row in sheet.rows:
        cells = dict(zip(sheet.columns, row, strict=True))
        short.rows.append(tuple(cells[name] for name in names))
        below.append(" ".join(cells[name] for name in sheet.prose))
    widths = short.widths()
    yield Text(_line(short, names, widths), style="bold")
    for row, prose in zip(short.rows, below, strict=True):
        yield Text(_line(short, row, widths))
        if prose:
            yield Text(" " * 2 * _GAP + prose)


def _line(sheet: Sheet, cells: Sequence[str], widths: Sequence[int]) -> str:
    spaced = (
        " " * (width - cell_len(cell)) + cell
        if column in sheet.right
        else cell + " " * (width - cell_len(cell))
        for column, cell, width in zip(sheet.columns, cells, widths, strict=True)
    )
    return (" " * _GAP).join(spaced).rstrip()
