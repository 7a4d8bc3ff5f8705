"""A node: reads messages, a line each, and answers each with a line, in order.

Whatever it is sent, it answers and goes on: what it cannot do is an error in the
reply. It ends with its input, or when nobody reads its answers.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import msgspec

from workstealing.errors import RedisError, RedisUnavailable
from workstealing.node.cluster import Cluster
from workstealing.node.lines import LONGEST, messages
from workstealing.node.messages import understood
from workstealing.node.refusing import Code, Refused

__all__ = ("Node",)


class Node:
    """Speaks for a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def serve(self, source: BinaryIO, sink: BinaryIO) -> None:
        """Answer each message of a stream, at once, until it ends."""
        for message in messages(source):
            sink.write(f"{self.answer(message)}\n".encode())
            sink.flush()

    def answer(self, message: bytes) -> str:
        """Return the reply to a message, both as JSON."""
        try:
            letter = _decoded(message)
        except Refused as refused:
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
                raise Refused(Code.MALFORMED_REQUEST, "the body is not an object")
            if number is None and body.get("msg_id") is not None:
                raise Refused(Code.MALFORMED_REQUEST, "msg_id is not an integer")
            if any(_text(address) != address for address in addresses):
                raise Refused(Code.MALFORMED_REQUEST, "src or dest is not a string")
            reply = self._cluster.answer(understood(body))
        except Refused as refused:
            return _error(number, refused)
        except RedisUnavailable as error:
            return _error(number, Refused(Code.TIMEOUT, str(error)))
        except RedisError as error:
            return _error(number, Refused(Code.TEMPORARILY_UNAVAILABLE, str(error)))
        kind = reply.pop("type")
        return {"type": kind, "in_reply_to": number, **reply}


def _decoded(message: bytes) -> dict[str, Any]:
    if len(message) > LONGEST:
        raise Refused(Code.MALFORMED_REQUEST, f"a message has {LONGEST} bytes at most")
    try:
        letter = msgspec.json.decode(message)
    # Nesting without end is no JSON of ours either.
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(Code.MALFORMED_REQUEST, f"not JSON: {error}") from error
    if not isinstance(letter, dict):
        raise Refused(Code.MALFORMED_REQUEST, "a message is a JSON object")
    return letter


def _written(letter: dict[str, Any]) -> str:
    # Python would write NaN and Infinity, which are no JSON.
    return json.dumps(letter, allow_nan=False)


def _error(number: int | str | None, refused: Refused) -> dict[str, Any]:
    return {
        "type": "error",
        "in_reply_to": number,
        "code": int(refused.code),
        "text": refused.text,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
