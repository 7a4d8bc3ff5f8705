"""Reads what Sentinels say of the primary of one service; does no I/O.

What it does not know, such as words of other services, is None. In a failover, the
Sentinel that leads it announces each step; the others only how it ended:

- `+failover-state-send-slaveof-noone`: a replica will be told to become the primary.
- `+failover-state-wait-promotion`: it has been told. It does so within milliseconds,
  but the Sentinel asks it only once a second.
- `+promoted-slave`: the Sentinel has seen that it did.
- `-failover-abort-slave-timeout`: the Sentinel has not, and has given it up.
- `+switch-master`: the old and the new address, some 100 ms later, from all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ("CHANNELS", "Announcement", "ServerAddress", "read_reply")

ServerAddress = tuple[str, int]
"""A host and a port."""

_CHOSEN = b"+failover-state-send-slaveof-noone"
_PROMOTING = b"+failover-state-wait-promotion"
_PROMOTED = b"+promoted-slave"
_GIVEN_UP = b"-failover-abort-slave-timeout"
_SWITCHED = b"+switch-master"
CHANNELS = (_CHOSEN, _PROMOTING, _PROMOTED, _GIVEN_UP, _SWITCHED)

_PORT_DIGITS, _LAST_PORT = 5, 65_535

_GIVEN_UP_TEXT = re.compile(r"master (?P<service>.+) \S+ \d+")
_SWITCHED_TEXT = re.compile(r"(?P<service>.+) \S+ \d+ (?P<host>\S+) (?P<port>\d+)")
_REPLICA_TEXT = re.compile(
    r"slave \S+ (?P<host>\S+) (?P<port>\d+) @ (?P<service>.+) \S+ \d+"
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a Sentinel says of a primary: one that is, becomes or does not become it.

    "named" is the answer to a question; the others come unasked.
    """

    what: Literal["named", "promoting", "promoted", "given up"]
    address: ServerAddress | None = None


def read_reply(reply: Any, service: str) -> Announcement | None:
    """Return what an answer or a published message says of a service."""
    match reply:
        case [bytes() as host, bytes() as port]:
            address = _address(host.decode(errors="replace"), port.decode("latin-1"))
            return Announcement("named", address) if address else None
        case [b"message", bytes() as channel, bytes() as text]:
            return _read_message(channel, text.decode(errors="replace"), service)
    return None


def _read_message(channel: bytes, text: str, service: str) -> Announcement | None:
    if channel == _GIVEN_UP:
        told = _GIVEN_UP_TEXT.fullmatch(text)
        return Announcement("given up") if told and told["service"] == service else None
    told = (_SWITCHED_TEXT if channel == _SWITCHED else _REPLICA_TEXT).fullmatch(text)
    if told is None or told["service"] != service:
        return None
    address = _address(told["host"], told["port"])
    is_done = channel in (_PROMOTED, _SWITCHED)
    what: Literal["promoting", "promoted"] = "promoted" if is_done else "promoting"
    return Announcement(what, address) if address else None


def _address(host: str, port: str) -> ServerAddress | None:
    is_number = port.isascii() and port.isdecimal() and len(port) <= _PORT_DIGITS
    number = int(port) if is_number else 0
    return (host, number) if host and 0 < number <= _LAST_PORT else None
