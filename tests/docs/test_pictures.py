"""The pictures of the docs are those that `make pictures` draws, and can be read."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pictures.__main__ import FOLDER, PICTURES
from pictures.canvas import DARK, LIGHT, Theme

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
