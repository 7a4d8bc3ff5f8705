"""Makes texts of others safe for a terminal and for a log.

Messages of exceptions, ids, names and what tasks print may come from anywhere. They
must not move a cursor, reverse the direction of writing, or forge a line of a log. What
is stored, and what is printed as JSON, stays as it is.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable
from textwrap import indent
from typing import Any

__all__ = ("escape_record", "escaping_logger", "on_one_line", "printable")


def printable(text: str) -> str:
    """Return the text with control characters escaped, all but the ends of lines."""
    return text if text.isprintable() else "\n".join(map(on_one_line, text.split("\n")))


def on_one_line(text: str) -> str:
    """Return the text with control characters escaped, also the ends of lines."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def escaping_logger(name: str) -> logging.Logger:
    """Return the logger of that name; it escapes what its records say."""
    logger = logging.getLogger(name)
    logger.addFilter(escape_record)
    return logger


def escape_record(record: logging.LogRecord) -> bool:
    """Escape what a record says. Is a filter of logging.

    A traceback keeps its lines, and the lines of a message in it are indented; of a
    very long one, the middle is cut out. One in which nothing is to be escaped is left
    to the formatters of the user.
    """
    if isinstance(record.args, tuple):
        record.args = tuple(map(_escaped, record.args))
    if record.exc_info and not record.exc_text:
        try:
            parts = traceback.format_exception(*record.exc_info)
        except Exception:  # noqa: BLE001 - it is the user's __str__
            return True
        # The parts first: to escape a message of many megabytes takes seconds.
        safe = _without_middle(_safe_traceback(map(_without_middle, parts)))
        if safe != "".join(parts):
            record.exc_text = safe.rstrip("\n")
    return True


def _without_middle(text: str) -> str:
    """Return the first and the last 32 Ki characters of a text that is longer."""
    half = _LONGEST_TRACEBACK // 2
    cut = len(text) - _LONGEST_TRACEBACK
    if cut <= 0:
        return text
    return f"{text[:half]} … ({cut:,} characters) … {text[-half:]}"


_LONGEST_TRACEBACK = 64 * 1024
_HEADER = "Traceback (most recent call last):\n"


def _safe_traceback(parts: Iterable[str]) -> str:
    """Return a traceback in which no message or note begins a line at the margin.

    Python writes a message as one part, and each line of a note as another. Stack
    entries and groups are indented anyway; the line between two chained errors comes
    after an empty one.
    """
    safe, in_message = "", False
    for part in map(printable, parts):
        if part.startswith("\n") and part != "\n":
            in_message = False
            safe += part
        elif not in_message and (part == _HEADER or part[:1].isspace()):
            safe += part
        else:
            first, end, rest = ("", "", part) if in_message else part.partition("\n")
            safe += first + end + indent(rest, "    ", _is_at_margin)
            in_message = True
    return safe


def _is_at_margin(line: str) -> bool:
    return not line[:1].isspace()


def _escaped(argument: Any) -> Any:
    if argument is None or isinstance(argument, int | float):
        return argument
    if isinstance(argument, str):
        return on_one_line(argument)
    return _EscapedArgument(argument)


class _EscapedArgument:
    """Anything else, such as an exception: it is written when the record is."""

    __slots__ = ("_argument",)

    def __init__(self, argument: object) -> None:
        self._argument = argument

    def __str__(self) -> str:
        return on_one_line(str(self._argument))

    def __repr__(self) -> str:
        return on_one_line(repr(self._argument))
