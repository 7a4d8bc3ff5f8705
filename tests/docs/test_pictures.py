"""The pictures of the docs are those that `make pictures` draws, and can be read."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pictures.__main__ import FOLDER, PICTURES
from pictures.canvas import DARK, LIGHT, Theme
from pictures.screen import Screen
from pictures.screenshots import SHOTS

ROOT = Path(__file__).parents[2]
MOVING = (
    *("README.md", "docs/tasks.md", "docs/stealing.md", "docs/pools.md"),
    *("docs/limits.md", "docs/composition.md", "docs/schedules.md", "docs/pause.md"),
    *("docs/choosing-a-rate.md", "docs/dashboard.md", "docs/command-line.md"),
)
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


@THEMES
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_as_it_is_drawn_today(name: str, theme: Theme) -> None:
    kept = (FOLDER / f"{name}-{theme.name}.svg").read_text(encoding="utf-8")

    assert kept == PICTURES[name](theme), "run  make pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_what_it_shows(name: str) -> None:
    root = ElementTree.fromstring(PICTURES[name](LIGHT))

    assert root.findtext("{http://www.w3.org/2000/svg}title")


@THEMES
@pytest.mark.parametrize("name", SHOTS)
def test_the_dashboard_is_shown_in_both_themes_and_loads_quickly(
    name: str, theme: Theme
) -> None:
    picture = (FOLDER / f"{name}-{theme.name}.png").read_bytes()

    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000


@pytest.mark.parametrize("name", [*PICTURES, *SHOTS])
def test_every_picture_is_on_a_page_in_both_themes(name: str) -> None:
    ending = "png" if name in SHOTS else "svg"
    shown = [
        page
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        if f"images/{name}-light.{ending}" in (text := page.read_text("utf-8"))
        and f"images/{name}-dark.{ending}" in text
    ]

    assert shown


@pytest.mark.parametrize("page", MOVING)
def test_a_page_that_explains_movement_has_a_picture(page: str) -> None:
    assert "<picture>" in (ROOT / page).read_text("utf-8")


def test_the_readme_opens_with_a_picture() -> None:
    beginning, _, _ = (ROOT / "README.md").read_text("utf-8").partition("\n## ")

    assert "<picture>" in beginning


def test_a_recording_is_played_line_by_line_as_a_terminal_shows_it() -> None:
    screen = Screen(height=3)
    screen.write("gone\r\nfirst\r\n\x1b[31mred\x1b[0m  plain\r\nlast")
    screen.write("\x1b[2K\r\x1b[1Anew\x1b[1A\x1b[2K\rFIRST")

    shown = [[(span.column, span.text) for span in line] for line in screen.shown()]

    assert shown == [[(0, "gone")], [(0, "FIRST")], [(0, "new"), (5, "plain")]]


@THEMES
@pytest.mark.parametrize("colour", ["text", "quiet", "accent", "good", "bad"])
def test_text_can_be_read_on_its_background(colour: str, theme: Theme) -> None:
    page = {"light": "#ffffff", "dark": "#0d1117"}[theme.name]

    for background in (page, theme.box):
        assert contrast(getattr(theme, colour), background) >= 4.5


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG defines it."""
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
