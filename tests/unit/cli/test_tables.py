"""Tables and trees break no name, on a terminal or in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from workstealing.cli.consoles import wrapped
from workstealing.cli.queue_tables import tree_lines
from workstealing.cli.tables import (
    Curve,
    PagePart,
    TextTable,
    plain_lines,
    print_page,
    rendered,
)
from workstealing.inspecting import TreeNode

LONG = "3f9c2b7a51d0e864-" * 6


def _printed(table: PagePart, width: int = 80) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    print_page([table], console)
    return file.getvalue().splitlines()


def _table(*rows: tuple[str, str, str]) -> TextTable:
    made = TextTable(("id", "tasks", "note"), right=("tasks",), prose=("note",))
    for row in rows:
        made.add(*row)
    return made


def test_on_a_terminal_only_prose_is_folded() -> None:
    lines = _printed(_table(("one-and-only", "1", "some words " * 20)))

    assert max(map(len, lines)) <= 80
    assert sum("one-and-only" in line for line in lines) == 1
    assert len(lines) > 5


def test_prose_without_room_beside_the_names_is_printed_below_its_row() -> None:
    why = "ValueError: this was not good at all, and 3 times so; " * 3

    table = _table((LONG[:70], "1", why), ("x", "2", ""))
    head, row, *below, other = _printed(table)

    assert head.split() == ["id", "tasks"]
    assert row.split() == [LONG[:70], "1"]
    assert " ".join(line.strip() for line in below) == why.strip()
    assert max(map(len, below)) <= 80
    assert other.split() == ["x", "2"]


def test_a_name_wider_than_the_terminal_is_not_broken() -> None:
    made = TextTable(("worker", "tasks", "host"), right=("tasks",))
    made.add(LONG, "1", "mill")
    made.add("short", "12", "well")

    lines = _printed(made)

    assert sum(LONG in line for line in lines) == 1
    assert sum("mill" in line for line in lines) == 1


def test_in_a_pipe_a_row_is_one_line_with_a_dash_for_an_empty_cell() -> None:
    table = _table((LONG, "1,000", "first\nsecond"), ("größer", "2", ""))
    table.footer.append("… 3 more")

    assert list(plain_lines(["a title", table])) == [
        "a title",
        f"{'id'.ljust(len(LONG))}  tasks  note",
        f"{LONG}  1,000  first second",
        f"{'größer'.ljust(len(LONG))}      2  -",
        "… 3 more",
    ]


def test_wide_characters_keep_the_columns_aligned() -> None:
    _, one, two = plain_lines([_table(("日本", "1", "x"), ("abcd", "1", "x"))])

    assert one == "日本      1  x"
    assert two == "abcd      1  x"


def test_no_cell_can_control_the_terminal() -> None:
    table = _table(("\x1b[2J", "1", "[bold]not markup[/bold]"))

    assert not any("\x1b" in line for line in plain_lines([table, "\x1b[2J"]))
    assert any("\\x1b[2J" in line and "[bold]" in line for line in _printed(table))
    assert "\x1b" not in "".join(
        segment.text for segment in Console().render(rendered(["\x1b[2J"], 80))
    )


def test_a_title_may_have_several_lines() -> None:
    table = TextTable(("", "rate=0.1\nby day"), right=("rate=0.1\nby day",))
    table.add("calls", "1,000")

    assert list(plain_lines([table])) == [
        "       rate=0.1",
        "         by day",
        "calls     1,000",
    ]


def test_a_tree_is_drawn_as_folders_with_notes_at_the_side() -> None:
    root = TreeNode(
        "q",
        "the queue",
        (
            TreeNode("inbox", "", (TreeNode("a"), TreeNode("a.lock", "pool.0#1"))),
            TreeNode("queues", "", (TreeNode("pool.0", "", (TreeNode("inbox"),)),)),
        ),
    )

    assert tree_lines(root) == [
        "q                <---- the queue",
        "├── inbox",
        "│   ├── a",
        "│   └── a.lock   <---- pool.0#1",
        "└── queues",
        "    └── pool.0",
        "        └── inbox",
    ]


def test_no_name_of_a_tree_can_control_the_terminal() -> None:
    (line,) = tree_lines(TreeNode("\x1b[2Jgone\r"))

    assert line == "\\x1b[2Jgone\\r"


def test_a_table_of_numbers_that_is_too_wide_is_broken_between_columns() -> None:
    titles = [f"column {n}" for n in range(8)]
    made = TextTable(titles, right=titles)
    made.add(*(f"{n}00" for n in range(8)))

    lines = _printed(made, 50)

    assert max(map(len, lines)) <= 50
    assert " ".join(lines).split() == [
        *(["column", "0", "column", "1", "column", "2", "column", "3"]),
        "─" * 38,
        *("000", "100", "200", "300"),
        *(["column", "4", "column", "5", "column", "6", "column", "7"]),
        "─" * 38,
        *("400", "500", "600", "700"),
    ]


def test_a_table_with_names_that_is_too_wide_becomes_a_list() -> None:
    made = TextTable(
        ("worker", "tasks", "host", "why"), right=("tasks",), prose=("why",)
    )
    made.add("a-worker-with-a-long-name", "12", "a-host-with-a-long-name", "two words")

    assert _printed(made, 40) == [
        "a-worker-with-a-long-name",
        "    tasks 12",
        "    host a-host-with-a-long-name",
        "    two words",
    ]


def test_a_curve_shows_the_latest_values_that_there_is_room_for() -> None:
    curve = Curve("done/min", [*range(60), 0], "now 0")

    (wide,) = plain_lines([curve])
    narrow = "".join(_printed(curve, 45))

    assert wide.startswith("done/min  ▁▂")
    assert wide.endswith("██▁  now 0")
    assert len(narrow) <= 45
    assert narrow.endswith("██▁  now 0")


@pytest.mark.parametrize("width", [1, 7, 23, 50, 200])
def test_prose_is_never_broken_inside_a_word(width: int) -> None:
    prose = "  It was submitted to this run of the queue 日本語 times"

    lines = wrapped(prose, width)

    assert " ".join(lines).split() == prose.split()
    assert all(line.startswith("  ") for line in lines)
    assert all(cell_len(line) <= width or len(line.split()) == 1 for line in lines)
