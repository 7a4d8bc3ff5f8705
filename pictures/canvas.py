"""Shapes and colours; a drawing is a string of SVG.

Positions are of the centre of a text, and of the upper left corner of a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ("DARK", "LIGHT", "Canvas", "Theme")


@dataclass(frozen=True)
class Theme:
    """The colours of a page: each has a contrast of at least 4.5 to what is behind."""

    name: str
    text: str
    quiet: str
    line: str
    box: str
    accent: str
    good: str
    bad: str


LIGHT = Theme(
    name="light",
    text="#1f2430",
    quiet="#5a6372",
    line="#8a93a3",
    box="#eef1f6",
    accent="#3556c0",
    good="#1c7a45",
    bad="#b3261e",
)
DARK = Theme(
    name="dark",
    text="#e8ebf2",
    quiet="#a4adbd",
    line="#77818f",
    box="#232833",
    accent="#8aa6ff",
    good="#5fd08f",
    bad="#ff8a80",
)


class Canvas:
    """A drawing that grows by what is put onto it.

    Args:
        theme: its colours.
        width: in points.
        height: in points.
        title: what it shows, for those who do not see it.
        style: rules of CSS, as for what moves.
    """

    def __init__(
        self, theme: Theme, width: int, height: int, title: str, style: str = ""
    ) -> None:
        self.theme = theme
        self._size = (width, height)
        self._title = title
        self._style = style
        self._shapes: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 14,
        colour: str = "",
        anchor: str = "middle",
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """Write a line."""
        family = "ui-monospace,Menlo,Consolas,monospace" if mono else "inherit"
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
            f' dominant-baseline="central" fill="{colour or self.theme.text}"'
            f' font-weight="{600 if bold else 400}" font-family="{family}">'
            f"{escape(words)}</text>"
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "",
        line: str = "",
        name: str = "",
        radius: float = 6,
    ) -> None:
        """Draw a rectangle; a rule of CSS may move it by its name."""
        mark = f' class="{name}"' if name else ""
        self._shapes.append(
            f'<rect{mark} x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
            f' rx="{radius:g}" fill="{fill or self.theme.box}"'
            f' stroke="{line or self.theme.line}"/>'
        )

    def label(
        self,
        x: float,
        y: float,
        width: float,
        words: str,
        *,
        fill: str = "",
        line: str = "",
        colour: str = "",
    ) -> None:
        """Draw a box with a line of text in it, 34 points high."""
        self.box(x, y, width, 34, fill=fill, line=line)
        self.text(x + width / 2, y + 17, words, colour=colour)

    def arrow(
        self, *points: tuple[float, float], colour: str = "", dashed: bool = False
    ) -> None:
        """Draw a line through points, with a head at its end."""
        stroke = colour or self.theme.line
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        (x0, y0), (x, y) = points[-2:]
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
        along, across = (x - x0) / length, (y - y0) / length
        base = (x - 9 * along, y - 9 * across)
        corners = " ".join(
            f"{base[0] + side * across:.1f},{base[1] - side * along:.1f}"
            for side in (-4.5, 4.5)
        )
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{stroke}"'
            f' stroke-width="1.6" stroke-linejoin="round"{dash}/>'
            f'<polygon points="{x:g},{y:g} {corners}" fill="{stroke}"/>'
        )

    def curve(
        self, points: Sequence[tuple[float, float]], colour: str, *, width: float
    ) -> None:
        """Draw a line through many points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}"'
            f' stroke-width="{width:g}" stroke-linejoin="round"/>'
        )

    def line(
        self, start: tuple[float, float], end: tuple[float, float], colour: str = ""
    ) -> None:
        """Draw a thin line."""
        self._shapes.append(
            f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}"'
            f' stroke="{colour or self.theme.line}"/>'
        )

    def __str__(self) -> str:
        width, height = self._size
        style = f"<style>{self._style}</style>" if self._style else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' role="img" font-family="system-ui,Helvetica,Arial,sans-serif">\n'
            f"<title>{escape(self._title)}</title>{style}\n"
            + "\n".join(self._shapes)
            + "\n</svg>\n"
        )
