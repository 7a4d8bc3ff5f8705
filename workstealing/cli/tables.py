"""Tables, curves and prose for people and for pipes; ids and names are never broken.

On a terminal prose is broken between words only, in its column or below its row. A
table that is too wide is broken between columns if it has numbers only, and otherwise
becomes a list, an entry for each row; so nothing is cut off however narrow the terminal
is. In a pipe a row is one line however long, columns are separated by two spaces, and
an empty cell is a dash, so that `grep` and `awk` can be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from workstealing._printing import on_one_line, printable
from workstealing.cli.consoles import wrapped

__all__ = (
    "Curve",
    "PagePart",
    "Paint",
    "TextTable",
    "plain_lines",
    "print_page",
    "rendered",
)

_GAP = 2
# A narrower column of prose is unreadable.
_NARROWEST_PROSE = 24
_INDENT = "    "
_BARS = "▁▂▃▄▅▆▇█"

Paint = Callable[[str], str]
"""Says in which style a cell is printed, as rich names it; empty for none."""


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
    paint: Mapping[str, Paint] = field(default_factory=dict)
    """The colours of columns."""

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

    def only(self, columns: Sequence[str]) -> TextTable:
        """Return the table with only these columns, and without its footer."""
        made = TextTable(columns, self.right, self.prose, paint=self.paint)
        for row, style in zip(self.rows, self.styles, strict=True):
            cells = dict(zip(self.columns, row, strict=True))
            made.rows.append(tuple(cells[name] for name in columns))
            made.styles.append(style)
        return made


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over time, as bars of one line; the latest is at the right."""

    title: str
    values: Sequence[float]
    note: str = ""
    style: str = ""
    highest: float = 0.0
    """What the highest bar stands for; 0 for the largest of the values."""

    def bars(self, most: int) -> str:
        """Draw the last values, at most so many."""
        top = self.highest or max(self.values, default=0.0)
        return "".join(
            _BARS[min(7, -int(-value * 7 // top))] if top else _BARS[0]
            for value in self.values[-most:]
        )


PagePart = TextTable | Curve | Text | str
"""What a page consists of: tables, curves and lines."""


def print_page(parts: Sequence[PagePart], console: Console) -> None:
    """Print a page for its reader: a person at a terminal, or a program."""
    if console.is_terminal:
        console.print(rendered(parts, console.width), soft_wrap=True)
        return
    for line in _plain_texts(parts):
        console.print(line, soft_wrap=True)


def rendered(parts: Sequence[PagePart], width: int) -> Group:
    """Return a page for a terminal of that width."""
    return Group(*(piece for part in parts for piece in _pieces(part, width)))


def plain_lines(parts: Sequence[PagePart]) -> Iterator[str]:
    """Return a page for a pipe, line by line."""
    return (text.plain for text in _plain_texts(parts))


def _plain_texts(parts: Sequence[PagePart]) -> Iterator[Text]:
    for part in parts:
        if isinstance(part, str):
            yield from map(Text, printable(part).splitlines() or [""])
        elif isinstance(part, Text):
            yield part
        elif isinstance(part, Curve):
            bars = part.bars(len(part.values))
            yield _spaced((f"{part.title}  ", ""), (bars, part.style), (part.note, ""))
        else:
            rows = [
                [" ".join(cell.split()) or "-" for cell in row] for row in part.rows
            ]
            shown = part.only(part.columns)
            shown.rows[:] = map(tuple, rows)
            yield from _table_lines(shown)
            yield from map(Text, part.footer)


def _pieces(part: PagePart, width: int) -> Iterator[RenderableType]:
    if isinstance(part, str):
        for line in printable(part).split("\n"):
            yield from map(Text, wrapped(line, width))
    elif isinstance(part, Text):
        yield from _wrapped_text(part, width)
    elif isinstance(part, Curve):
        yield from _curve(part, width)
    else:
        yield from _table(part, width)
        for line in part.footer:
            yield from map(Text, wrapped(line, width))


def _wrapped_text(text: Text, width: int) -> Iterator[Text]:
    """Break a text between words, and keep its colours."""
    at = 0
    for line in wrapped(text.plain, width):
        at = text.plain.index(line, at)
        yield text[at : at + len(line)] if line else Text()
        at += len(line)


def _curve(curve: Curve, width: int) -> Iterator[Text]:
    """Draw as many of the latest values as there is room for beside the words."""
    room = width - cell_len(curve.title) - cell_len(curve.note) - 2 * _GAP
    if room < min(len(curve.values), _NARROWEST_PROSE):
        yield from map(Text, wrapped(f"{curve.title}  {curve.note}", width))
        yield Text(curve.bars(width), style=curve.style)
        return
    bars = curve.bars(room)
    yield _spaced((f"{curve.title}  ", ""), (bars, curve.style), (curve.note, ""))


def _spaced(*words: tuple[str, str]) -> Text:
    (title, _), (bars, style), (note, _) = words
    return Text.assemble(title, (bars, style), f"  {note}" if note else "")


def _table(table: TextTable, width: int) -> Iterator[RenderableType]:
    widths = dict(zip(table.columns, table.widths(), strict=True))
    names = [name for name in table.columns if name not in table.prose]
    # The edges of the box are as wide as a gap.
    whole = sum(widths[name] + _GAP for name in names)
    needed = sum(_narrowest(table, name, widths[name]) + _GAP for name in table.prose)
    if whole + needed <= width:
        yield _rich_table(table)
    elif whole - _GAP <= width:
        yield from _with_prose_below(table, names, width)
    elif set(names) <= set(table.right):
        yield from _in_bands(table, widths, width)
    else:
        yield from _as_list(table, names, width)


def _narrowest(table: TextTable, column: str, width: int) -> int:
    """Return how narrow a column of prose may be so that each word is whole."""
    at = table.columns.index(column)
    words = (word for row in table.rows for word in row[at].split())
    longest = max(map(cell_len, words), default=0)
    return max(min(_NARROWEST_PROSE, width), longest, cell_len(column))


def _rich_table(table: TextTable) -> Table:
    # The gap is the padding and what the box puts between columns.
    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for column in table.columns:
        made.add_column(
            Text(column),
            justify="right" if column in table.right else "left",
            no_wrap=column not in table.prose,
        )
    for row, style in zip(table.rows, table.styles, strict=True):
        cells = zip(table.columns, row, strict=True)
        made.add_row(*(_cell(table, name, cell) for name, cell in cells), style=style)
    return made


def _with_prose_below(
    table: TextTable, names: Sequence[str], width: int
) -> Iterator[Text]:
    titles, *lines = _grouped_lines(table.only(names))
    for title in titles:
        title.stylize("bold")
        yield title
    for row, (line,) in zip(table.rows, lines, strict=True):
        yield line
        yield from _prose_of(table, row, width)


def _in_bands(
    table: TextTable, widths: Mapping[str, int], width: int
) -> Iterator[RenderableType]:
    found = _bands(table, widths, width)
    # As many bands as are needed, but of about the same width.
    while len(narrower := _bands(table, widths, width - 1)) == len(found):
        found, width = narrower, width - 1
    for band in found:
        yield _rich_table(table.only(band))


def _bands(table: TextTable, widths: Mapping[str, int], width: int) -> list[list[str]]:
    bands: list[list[str]] = [[]]
    room = width
    for name in table.columns:
        if bands[-1] and widths[name] + _GAP > room:
            bands.append([])
            room = width
        bands[-1].append(name)
        room -= widths[name] + _GAP
    return bands


def _as_list(table: TextTable, names: Sequence[str], width: int) -> Iterator[Text]:
    for row, style in zip(table.rows, table.styles, strict=True):
        cells = dict(zip(table.columns, row, strict=True))
        first, *others = names
        head = _cell(table, first, cells[first])
        head.stylize(style or "bold")
        yield head
        line = Text(_INDENT)
        for name in others:
            if not cells[name]:
                continue
            title = (f"{' '.join(name.split())} ", "dim")
            words = Text.assemble(title, _cell(table, name, cells[name]))
            if line.plain.strip() and line.cell_len + _GAP + words.cell_len > width:
                yield line
                line = Text(_INDENT)
            line.append(" " * _GAP if line.plain.strip() else "")
            line.append_text(words)
        if line.plain.strip():
            yield line
        yield from _prose_of(table, row, width)


def _prose_of(table: TextTable, row: Sequence[str], width: int) -> Iterator[Text]:
    cells = dict(zip(table.columns, row, strict=True))
    if prose := " ".join(filter(None, (cells[name] for name in table.prose))):
        yield from map(Text, wrapped(prose, width, _INDENT))


def _cell(table: TextTable, column: str, cell: str) -> Text:
    paint = table.paint.get(column)
    return Text(cell, style=paint(cell) if paint else "")


def _table_lines(table: TextTable) -> Iterator[Text]:
    for group in _grouped_lines(table):
        yield from group


def _grouped_lines(table: TextTable) -> Iterator[list[Text]]:
    """Lay out the title, which may have several lines, and then each row."""
    widths = table.widths()
    titles = [column.split("\n") for column in table.columns]
    yield [
        _line(table, [Text("".join(title[n : n + 1])) for title in titles], widths)
        for n in range(max(map(len, titles)))
    ]
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        yield [_line(table, [_cell(table, *one) for one in cells], widths)]


def _line(table: TextTable, cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for column, cell, width in zip(table.columns, cells, widths, strict=True):
        space = " " * (width - cell.cell_len)
        parts = (space, cell) if column in table.right else (cell, space)
        line.append(" " * _GAP if column != table.columns[0] else "")
        for part in parts:
            line.append(part)
    line.rstrip()
    return line
