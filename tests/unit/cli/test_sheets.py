"""Tables break no name, on a terminal or in a pipe."""

from __future__ import annotations

import io

from rich.console import Console

from workstealing.cli.sheets import Sheet, drawn, plain_lines, show

LONG = "3f9c2b7a51d0e864-" * 6


def _shown(sheet: Sheet, width: int = 80) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    show([sheet], console)
    return file.getvalue().splitlines()


def _sheet(*rows: tuple[str, str, str]) -> Sheet:
    made = Sheet(("id", "tasks", "note"), right=("tasks",), prose=("note",))
    for row in rows:
        made.add(*row)
    return made


def test_on_a_terminal_only_prose_is_folded() -> None:
    lines = _shown(_sheet(("one-and-only", "1", "some words " * 20)))

    assert max(map(len, lines)) <= 80
    assert sum("one-and-only" in line for line in lines) == 1
    assert len(lines) > 5


def test_prose_that_names_leave_no_room_for_stands_below_its_row() -> None:
    why = "ValueError: this was not good at all, and 3 times so; " * 3

    head, row, below, other = _shown(_sheet((LONG[:70], "1", why), ("x", "2", "")))

    assert head.split() == ["id", "tasks"]
    assert row.split() == [LONG[:70], "1"]
    assert below.strip() == why.strip()
    assert other.split() == ["x", "2"]


def test_a_name_wider_than_the_terminal_is_not_broken() -> None:
    made = Sheet(("worker", "tasks", "host"), right=("tasks",))
    made.add(LONG, "1", "mill")
    made.add("short", "12", "well")

    lines = _shown(made)

    assert sum(LONG in line for line in lines) == 1
    assert sum("mill" in line for line in lines) == 1


def test_in_a_pipe_a_row_is_one_line_with_a_dash_for_nothing() -> None:
    sheet = _sheet((LONG, "1,000", "first\nsecond"), ("größer", "2", ""))
    sheet.more.append("… 3 more")

    assert list(plain_lines(["a title", sheet])) == [
        "a title",
        f"{'id'.ljust(len(LONG))}  tasks  note",
        f"{LONG}  1,000  first second",
        f"{'größer'.ljust(len(LONG))}      2  -",
        "… 3 more",
    ]


def test_wide_characters_keep_the_columns_in_line() -> None:
    _, one, two = plain_lines([_sheet(("日本", "1", "x"), ("abcd", "1", "x"))])

    assert one == "日本      1  x"
    assert two == "abcd      1  x"


def test_no_cell_can_play_tricks_on_a_terminal() -> None:
    sheet = _sheet(("\x1b[2J", "1", "[bold]not markup[/bold]"))

    assert not any("\x1b" in line for line in plain_lines([sheet, "\x1b[2J"]))
    assert any("\\x1b[2J" in line and "[bold]" in line for line in _shown(sheet))
    assert "\x1b" not in "".join(
        segment.text for segment in Console().render(drawn(["\x1b[2J"], 80))
    )
