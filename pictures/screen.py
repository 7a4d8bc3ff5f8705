"""A terminal in memory: what is on the screen after some output."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby

__all__ = ("Screen", "Span", "Style")

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b.|[\r\n]|[^\x1b\r\n]+")
_WORDS = re.compile(r"\S+(?: \S+)*")
_CUBE = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True)
class Style:
    """How a character looks."""

    colour: str = ""
    """`red`, `green`, …; empty for that of the terminal."""
    bold: bool = False
    dim: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of one style, side by side."""

    column: int
    text: str
    style: Style


_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_Line = list[tuple[str, Style]]


class Screen:
    """Understands what rich writes: colours, cursor up, erase."""

    def __init__(self, height: int) -> None:
        self._height = height
        self._lines: list[_Line] = [[]]
        self._row = self._column = 0
        self._style = Style()

    def write(self, text: str) -> None:
        """Take what a program has written."""
        for piece in _PIECE.finditer(text):
            if piece[2]:
                self._command(piece[2], piece[1])
            elif piece[0] == "\r":
                self._column = 0
            elif piece[0] == "\n":
                self._row += 1
                while len(self._lines) <= self._row:
                    self._lines.append([])
            elif not piece[0].startswith("\x1b"):
                self._put(piece[0])

    def shown(self) -> tuple[tuple[Span, ...], ...]:
        """Return the last lines, as many as the terminal has."""
        lines = list(self._lines)
        while lines and not "".join(c for c, _ in lines[-1]).strip():
            lines.pop()
        return tuple(map(_spans, lines[-self._height :]))

    def _put(self, text: str) -> None:
        line = self._lines[self._row]
        line += [(" ", Style())] * (self._column - len(line))
        cells = [(character, self._style) for character in text]
        line[self._column : self._column + len(cells)] = cells
        self._column += len(cells)

    def _command(self, letter: str, numbers: str) -> None:
        if letter == "A":
            self._row = max(0, self._row - int(numbers or 1))
        elif letter == "K":
            self._lines[self._row] = []
        elif letter == "m":
            self._paint([int(number or 0) for number in numbers.split(";")])

    def _paint(self, codes: list[int]) -> None:
        style = self._style
        while codes:
            code = codes.pop(0)
            if code == 0:
                style = Style()
            elif code == 1:
                style = replace(style, bold=True)
            elif code == 2:
                style = replace(style, dim=True)
            elif 30 <= code <= 37:
                style = replace(style, colour=_NAMES[code - 30])
            elif code == 38:
                _, number = codes.pop(0), codes.pop(0)
                style = replace(style, colour=_nearest(number))
        self._style = style


def _nearest(number: int) -> str:
    """Name a colour of 256 by its strongest part; what is pink in bars is blue here."""
    if not 16 <= number < 232:
        return "quiet"
    red, green, blue = (_CUBE[(number - 16) // size % 6] for size in (36, 6, 1))
    if max(red, green, blue) - min(red, green, blue) < 60:
        return "quiet"
    return "green" if green > max(red, blue) else "blue"


def _spans(line: _Line) -> tuple[Span, ...]:
    found = []
    column = 0
    for style, cells in groupby(line, key=lambda cell: cell[1]):
        text = "".join(character for character, _ in cells)
        # Spaces beside each other are one in a picture.
        found += [
            Span(column + words.start(), words[0], style)
            for words in _WORDS.finditer(text)
        ]
        column += len(text)
    return tuple(found)
