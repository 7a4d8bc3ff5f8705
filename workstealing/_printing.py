"""Makes texts of others safe for a terminal and for a log.

Messages of exceptions, ids, names and what tasks print may come from anywhere. They
must not move a cursor, reverse the direction of writing, or forge a line of a log. What
is stored, and what is printed as JSON, stays as it is.
"""

from __future__ import annotations

import logging
import traceback
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
    """Escape what a record says; a traceback keeps its lines. Is a filter of logging.

    A traceback without control characters is left to the formatters of the user.
    """
    if isinstance(record.args, tuple):
        record.args = tuple(map(_escaped, record.args))
    if record.exc_info and not record.exc_text:
        try:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        except Exception:  # noqa: BLE001 - it is the user's __str__
            return True
        if (safe := printable(text)) != text:
            record.exc_text = safe
    return True


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
