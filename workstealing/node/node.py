"""A node: reads messages, one per line, and replies to each with a line, in order.

It replies to everything: what it cannot do gets an error as its reply. It ends with its
input, or when its output is closed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from workstealing.errors import RedisError, RedisUnavailable
from workstealing.node.cluster import Cluster
from workstealing.node.messages import ErrorCode, RequestRefused, read_request

__all__ = ("LONGEST", "Node")

LONGEST = 1 << 20
"""The most bytes of one message."""


class Node:
    """Reads requests, and replies for a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def serve(self, source: BinaryIO, sink: BinaryIO) -> None:
        """Reply to each message of a stream as it comes, until the stream ends."""
        for message in _messages(source):
            sink.write(f"{self.answer(message)}\n".encode())
            sink.flush()

    def answer(self, message: bytes) -> str:
        """Return the reply to a message, both as JSON."""
        try:
            letter = _decoded(message)
        except RequestRefused as refused:
            return _written(_error(None, refused))
        if "body" not in letter:
            return _written(self._answered(letter))
        sender, receiver = letter.get("src"), letter.get("dest")
        body = self._answered(letter["body"], sender, receiver)
        return _written({"src": _text(receiver), "dest": _text(sender), "body": body})

    def _answered(self, body: Any, *addresses: Any) -> dict[str, Any]:
        number = body.get("msg_id") if isinstance(body, dict) else None
        if not isinstance(number, int | str) or isinstance(number, bool):
            number = None
        try:
            if not isinstance(body, dict):
                raise RequestRefused(
                    ErrorCode.MALFORMED_REQUEST, "the body is not an object"
                )
            if number is None and body.get("msg_id") is not None:
                raise RequestRefused(
                    ErrorCode.MALFORMED_REQUEST,
                    "msg_id is neither an integer nor a string",
                )
            if any(_text(address) != address for address in addresses):
                raise RequestRefused(
                    ErrorCode.MALFORMED_REQUEST, "src or dest is not a string"
                )
            reply = self._cluster.answer(read_request(body))
        except RequestRefused as refused:
            return _error(number, refused)
        except RedisUnavailable as error:
            return _error(number, RequestRefused(ErrorCode.TIMEOUT, str(error)))
        except RedisError as error:
            return _error(
                number, RequestRefused(ErrorCode.TEMPORARILY_UNAVAILABLE, str(error))
            )
        kind = reply.pop("type")
        return {"type": kind, "in_reply_to": number, **reply}


def _messages(source: BinaryIO) -> Iterator[bytes]:
    """Yield each message as soon as it is complete.

    A message is one line, or several that begin with a line that is just `{`. These go
    on while lines are indented; the next line is the last one if it is just `}`, and
    begins another message if it is not. The rest of a message that is longer than
    `LONGEST` is dropped.
    """
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


def _decoded(message: bytes) -> dict[str, Any]:
    if len(message) > LONGEST:
        raise RequestRefused(
            ErrorCode.MALFORMED_REQUEST, f"a message may have at most {LONGEST} bytes"
        )
    try:
        letter = msgspec.json.decode(message)
    # Too deep a nesting counts as malformed too.
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RequestRefused(
            ErrorCode.MALFORMED_REQUEST, f"not JSON: {error}"
        ) from error
    if not isinstance(letter, dict):
        raise RequestRefused(
            ErrorCode.MALFORMED_REQUEST, "a message must be a JSON object"
        )
    return letter


def _written(letter: dict[str, Any]) -> str:
    # Python would write NaN and Infinity, which are not JSON.
    return json.dumps(letter, allow_nan=False)


def _error(number: int | str | None, refused: RequestRefused) -> dict[str, Any]:
    return {
        "type": "error",
        "in_reply_to": number,
        "code": int(refused.code),
        "text": refused.text,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
