"""Where commands print: a terminal that wraps words and has colours, or a pipe.

`NO_COLOR` takes the colours away, `FORCE_COLOR` gives them to a pipe as well, and a
terminal that is `TERM=dumb` has none and is never drawn over. A pipe keeps its layout,
one row to a line, whatever its colours.
"""

from __future__ import annotations

import os
import sys

import click
from rich.cells import cell_len
from rich.console import Console

from workstealing._printing import printable

__all__ = ("can_be_redrawn", "open_console", "say", "wrapped")


def open_console(*, err: bool = False) -> Console:
    """Return the console of standard output, or of standard error."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty() and os.environ.get("FORCE_COLOR"):
        return Console(
            stderr=err, highlight=False, force_terminal=False, color_system="standard"
        )
    return Console(stderr=err, highlight=False, force_terminal=stream.isatty())


def can_be_redrawn(console: Console) -> bool:
    """Return whether a page may replace the one before it."""
    return console.is_terminal and not console.is_dumb_terminal


def say(text: str, *, err: bool = False) -> None:
    """Print prose; on a terminal it is wrapped between words."""
    console = open_console(err=err)
    for line in printable(text).split("\n"):
        lines = wrapped(line, console.width) if console.is_terminal else [line]
        for one in lines:
            click.echo(one, err=err)


def wrapped(line: str, width: int, indent: str = "") -> list[str]:
    """Break a line between words; a word that is too long for a line has its own.

    All lines have the indent of the first one, and what is given besides.
    """
    words = line.lstrip(" ")
    indent += " " * (len(line) - len(words))
    lines: list[str] = []
    begun = ""
    for word in words.split(" "):
        longer = f"{begun} {word}" if begun else f"{indent}{word}"
        if begun.strip() and cell_len(longer) > width:
            lines.append(begun.rstrip())
            begun = f"{indent}{word}"
        else:
            begun = longer
    return [*lines, begun.rstrip()]
