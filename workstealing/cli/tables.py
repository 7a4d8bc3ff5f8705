"""Tables and trees for people and for pipes; ids and names are never broken.

On a terminal only columns of prose are folded, or printed below their rows if the names
leave no room for them; a table whose names are wider than the terminal stays whole, and
the terminal wraps it. In a pipe a row is one line however long, columns are separated
by two spaces, and an empty cell is a dash, so that `grep` and `awk` can be used.
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

from workstealing._printing import on_one_line, printable
from workstealing.inspecting import QueueStat, TaskRow, TreeNode
from workstealing.inspecting.formatting import (
    plural,
    relative_time,
    timestamp,
)
from workstealing.inspecting.stat_rows import (
    WORKER_TITLES,
    live_first,
    pause_lines,
    place_counts,
    upkeep_ages,
    worker_row,
)

__all__ = (
    "PagePart",
    "TextTable",
    "headline",
    "places_table",
    "plain_lines",
    "print_page",
    "rendered",
    "task_table",
    "tree_lines",
    "upkeep_line",
    "workers_table",
)

_GAP = 2
# A narrower column of prose is unreadable.
_NARROWEST_PROSE = 24
_WIDEST_NAME = 46


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table to be printed; a column's title may have several lines."""

    columns: Sequence[str]
    right: Sequence[str] = ()
    """Columns of numbers."""
    prose: Sequence[str] = ()
    """Columns that may be folded."""
    rows: list[tuple[str, ...]] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    """The style of each row on a terminal, as rich names it."""
    footer: list[str] = field(default_factory=list)
    """Lines to be printed below."""

    def add(self, *cells: str, style: str = "") -> None:
        """Add a row; its cells may contain anything, and become one line each."""
        self.rows.append(tuple(on_one_line(cell.replace("\n", " ")) for cell in cells))
        self.styles.append(style)

    def widths(self) -> list[int]:
        """Return how wide each column must be so that nothing is broken."""
        return [
            max(cell_len(line) for cell in column for line in cell.split("\n"))
            for column in zip(self.columns, *self.rows, strict=True)
        ]


PagePart = TextTable | str
"""What a page consists of: tables and lines."""


def print_page(parts: Sequence[PagePart], console: Console) -> None:
    """Print a page for its reader: a person at a terminal, or a program."""
    if console.is_terminal:
        console.print(rendered(parts, console.width), soft_wrap=True)
        return
    for line in plain_lines(parts):
        click.echo(line)


def rendered(parts: Sequence[PagePart], width: int) -> Group:
    """Return a page for a terminal of that width."""
    return Group(*(piece for part in parts for piece in _pieces(part, width)))


def plain_lines(parts: Sequence[PagePart]) -> Iterator[str]:
    """Return a page for a pipe, line by line."""
    for part in parts:
        if isinstance(part, str):
            yield from printable(part).splitlines() or [""]
            continue
        rows = [[" ".join(cell.split()) or "-" for cell in row] for row in part.rows]
        shown = TextTable(part.columns, part.right, rows=[tuple(row) for row in rows])
        widths = shown.widths()
        yield from _title_lines(shown, widths)
        for row in shown.rows:
            yield _line(shown, row, widths)
        yield from part.footer


def headline(stat: QueueStat) -> str:
    """Return which queue it is, where and when, and what is special about it."""
    unknown = "" if stat.is_known else ": there is no such queue, or it was never used"
    closed = "; its input has ended" if stat.input_ended else ""
    now = timestamp(stat.now_ms)
    first = f"{stat.queue}/{stat.run} on {stat.server} at {now}{unknown}{closed}"
    return "\n".join([first, *(f"PAUSED: {line}" for line in pause_lines(stat))])


def places_table(stat: QueueStat, **more: str) -> TextTable:
    """Return how many tasks are where, and more columns."""
    cells = {**place_counts(stat), "outcomes": f"{stat.outcomes:,}", **more}
    titles = tuple(title.replace("_", " ") for title in cells)
    table = TextTable(titles, right=titles)
    table.add(*cells.values())
    return table


def workers_table(stat: QueueStat, most: int) -> TextTable:
    """Return a table of at most this many workers, live ones first."""
    table = TextTable(WORKER_TITLES, right=WORKER_TITLES[2:6])
    for worker in live_first(stat.workers)[:most]:
        table.add(*worker_row(worker).values())
    if not stat.living:
        table.footer.append("no worker is alive")
    if len(stat.workers) > most:
        more = len(stat.workers) - most
        table.footer.append(f"… {plural(more, 'more worker')}")
    return table


def upkeep_line(stat: QueueStat) -> str:
    """Return how long ago each duty of upkeep was last done."""
    ages = (f"{duty} {age}" for duty, age in upkeep_ages(stat).items())
    return on_one_line(f"Upkeep: {', '.join(ages) or 'none yet'}")


def task_table(tasks: Sequence[TaskRow], now_ms: int) -> TextTable:
    """Return a table of tasks."""
    table = TextTable(
        ("id", "task", "state", "worker", "when", "note"),
        right=("when",),
        prose=("note",),
    )
    for task in tasks:
        notes = [task.note] if task.note else []
        notes += [f"{task.attempts} failed"] if task.attempts else []
        notes += [f"{task.deaths} died"] if task.deaths else []
        notes += [f"stolen {task.steals} ×"] if task.steals else []
        table.add(
            task.id,
            task.task,
            task.state.value,
            task.worker,
            relative_time(task.at_ms, now_ms),
            ", ".join(notes),
        )
    return table


def tree_lines(root: TreeNode) -> list[str]:
    """Draw folders and files as the command `tree` does, with notes at the side."""
    drawn = list(_branches(root, "", ""))
    noted = [len(line) for line, note in drawn if note]
    column = min(_WIDEST_NAME, max(noted, default=0) + 2)
    return [
        f"{line.ljust(column)} <---- {note}" if note else line for line, note in drawn
    ]


def _pieces(part: PagePart, width: int) -> Iterator[RenderableType]:
    if isinstance(part, str):
        yield Text(printable(part))
        return
    widths = dict(zip(part.columns, part.widths(), strict=True))
    whole = sum(widths[name] + _GAP for name in part.columns if name not in part.prose)
    needed = sum(min(_NARROWEST_PROSE, widths[name]) for name in part.prose)
    if part.prose and whole + needed > width:
        yield from _with_prose_below(part)
    else:
        yield _rich_table(part, None if part.prose or whole <= width else whole)
    yield from map(Text, part.footer)


def _rich_table(table: TextTable, width: int | None) -> Table:
    # The gap is the padding and what the box puts between columns.
    made = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), width=width
    )
    for column in table.columns:
        is_prose = column in table.prose
        made.add_column(
            Text(column),
            justify="right" if column in table.right else "left",
            overflow="fold",
            no_wrap=not is_prose,
        )
    for row, style in zip(table.rows, table.styles, strict=True):
        made.add_row(*map(Text, row), style=style)
    return made


def _with_prose_below(table: TextTable) -> Iterator[RenderableType]:
    names = [name for name in table.columns if name not in table.prose]
    short = TextTable(names, right=table.right)
    below = []
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        short.rows.append(tuple(cells[name] for name in names))
        below.append(" ".join(cells[name] for name in table.prose))
    widths = short.widths()
    for title in _title_lines(short, widths):
        yield Text(title, style="bold")
    for row, prose in zip(short.rows, below, strict=True):
        yield Text(_line(short, row, widths))
        if prose:
            yield Text(" " * 2 * _GAP + prose)


def _title_lines(table: TextTable, widths: Sequence[int]) -> Iterator[str]:
    titles = [column.split("\n") for column in table.columns]
    for number in range(max(map(len, titles))):
        cells = [lines[number] if number < len(lines) else "" for lines in titles]
        yield _line(table, cells, widths)


def _line(table: TextTable, cells: Sequence[str], widths: Sequence[int]) -> str:
    spaced = (
        " " * (width - cell_len(cell)) + cell
        if column in table.right
        else cell + " " * (width - cell_len(cell))
        for column, cell, width in zip(table.columns, cells, widths, strict=True)
    )
    return (" " * _GAP).join(spaced).rstrip()


def _branches(node: TreeNode, before: str, below: str) -> Iterator[tuple[str, str]]:
    yield f"{before}{on_one_line(node.name)}", on_one_line(node.note)
    for number, child in enumerate(node.children, 1):
        if number == len(node.children):
            yield from _branches(child, f"{below}└── ", f"{below}    ")
        else:
            yield from _branches(child, f"{below}├── ", f"{below}│   ")
