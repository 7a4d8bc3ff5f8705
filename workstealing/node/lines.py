"""Reads messages from a stream: one a line, or one spread over indented lines.

A line that is just `{` begins a message that ends with the next line that is not
indented: with `}` if it is whole. Nothing much longer than a mebibyte is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

__all__ = ("LONGEST", "messages")

LONGEST = 1 << 20
"""Bytes of one message; a longer one is cut, but not to less than one byte more."""


def messages(source: BinaryIO) -> Iterator[bytes]:
    """Yield each message as soon as it is there."""
    spread = bytearray()
    for line in _lines(source):
        if spread and line[:1].isspace():
            spread += line[: LONGEST + 1 - len(spread)]
            continue
        if spread:
            is_whole = line.rstrip() == b"}"
            yield bytes(spread) + line if is_whole else bytes(spread)
            spread.clear()
            if is_whole:
                continue
        if line.rstrip() == b"{":
            spread += line
        elif line.strip():
            yield line
    if spread:
        yield bytes(spread)


def _lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(LONGEST + 1):
        yield line
        while len(line) > LONGEST and not line.endswith(b"\n"):
            line = source.readline(LONGEST + 1)
