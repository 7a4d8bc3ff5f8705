"""Horizontal bars as SVG, written by hand: no library is needed to draw eleven bars.

The text is real text, sized for the width of a README, and the picture has a title and
a description for those who cannot see it. A second series is hollow, so that it does
not need a colour of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ("DARK", "LIGHT", "Bar", "Theme", "bar_chart", "contrast")

_WIDTH = 820
_LEFT, _RIGHT = 190, 110
_ROW, _BAR, _TOP = 30, 18, 64
_THIN = 11


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours on a background of their own, each with a contrast of 4.5 or more."""

    name: str
    background: str
    text: str
    ours: str
    others: str


LIGHT = Theme("light", "#ffffff", "#1f2328", "#0b7285", "#59636e")
DARK = Theme("dark", "#0d1117", "#f0f6fc", "#3bc9db", "#9198a1")


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: a label, one value or two, and how they are written."""

    label: str
    values: tuple[float, ...]
    shown: tuple[str, ...]
    is_ours: bool = False


def bar_chart(title: str, legend: str, bars: Sequence[Bar], theme: Theme) -> str:
    """Return the picture as text."""
    height = _TOP + _ROW * len(bars) + 14
    most = max((value for bar in bars for value in bar.values), default=0.0)
    described = "; ".join(f"{bar.label}: {' and '.join(bar.shown)}" for bar in bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"',
        f'width="{_WIDTH}" height="{height}"',
        'role="img" aria-labelledby="title description"',
        'font-family="system-ui, -apple-system, Segoe UI, sans-serif" font-size="15">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(f"{legend}. {described}.")}</desc>',
        f'<rect width="{_WIDTH}" height="{height}" fill="{theme.background}"/>',
        _text(16, 28, title, theme.text, 'font-size="18" font-weight="600"'),
        _text(16, 50, legend, theme.text, 'font-size="14"'),
    ]
    for row, bar in enumerate(bars):
        lines += _row(_TOP + row * _ROW, bar, most, theme)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _row(top: float, bar: Bar, most: float, theme: Theme) -> list[str]:
    colour = theme.ours if bar.is_ours else theme.others
    weight = 'font-weight="600"' if bar.is_ours else ""
    middle = top + _ROW / 2
    anchor = f'text-anchor="end" {weight}'.strip()
    lines = [_text(_LEFT - 10, middle + 5, bar.label, theme.text, anchor)]
    thick = _BAR if len(bar.values) == 1 else _THIN
    widest = 0.0
    for at, value in enumerate(bar.values):
        width = max(1.5, value / most * (_WIDTH - _LEFT - _RIGHT)) if most else 1.5
        y = middle + (at - len(bar.values) / 2) * thick
        look = (
            f'fill="{colour}"'
            if at == 0
            else f'fill="none" stroke="{colour}" stroke-width="1.5"'
        )
        lines.append(
            f'<rect x="{_LEFT}" y="{y + 0.75:.1f}" width="{width:.1f}"'
            f' height="{thick - 1.5:.1f}" {look}/>'
        )
        widest = max(widest, width)
    written = " · ".join(bar.shown)
    lines.append(_text(_LEFT + widest + 8, middle + 5, written, theme.text, weight))
    return lines


def _text(x: float, y: float, words: str, colour: str, look: str) -> str:
    start = f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" {look}'.rstrip()
    return f"{start}>{escape(words)}</text>"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG defines it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
