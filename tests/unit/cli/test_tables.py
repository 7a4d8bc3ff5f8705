"""Tables and trees break no name, on a terminal or in a pipe."""

from __future__ import annotations

import io

from rich.console import Console

from workstealing.cli.tables import (
    TextTable,
    plain_lines,
    print_page,
    rendered,
    tree_lines,
)
from workstealing.inspecting import TreeNode

LONG = "3f9c2b7a51d0e864-" * 6


def _printed(table: TextTable, width: int = 80) -> list[str]:
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

    head, row, below, other = _printed(_table((LONG[:70], "1", why), ("x", "2", "")))

    assert head.split() == ["id", "tasks"]
    assert row.split() == [LONG[:70], "1"]
    assert below.strip() == why.strip()
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
