"""Looks at a server once, before anything else, and says what a person should know.

A server that evicts any key can evict a queue: that is a warning in the log, once per
server and process. A server older than Redis 6.2 is refused. A server that does not
tell (an ACL may forbid `INFO`) is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workstealing._printing import escaping_logger
from workstealing.errors import RedisError, RedisUnavailable
from workstealing.queue.steps import Flow, RedisCommand, ask

__all__ = ("ServerFacts", "advice", "first_look", "parse_facts", "refusal")

_log = escaping_logger(__name__)
_OLDEST = (6, 2)
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says about itself; None or empty where it does not."""

    flavour: str
    version: tuple[int, ...]
    policy: str
    memory_limit: int | None


def first_look(target: str) -> Flow[str | None]:
    """Log advice about a server; return why it cannot be used, or None.

    Raises `RedisUnavailable`: whatever was to come next need not be tried.
    """
    try:
        facts = yield from ask(RedisCommand(("INFO",), parse=parse_facts))
    except RedisUnavailable:
        raise
    except RedisError as error:
        _log.debug("cannot check the server %s: %s", target, error)
        return None
    warning = advice(facts)
    if warning and target not in _warned:
        _warned.add(target)
        _log.warning("the server %s %s", target, warning)
    return refusal(facts)


def advice(facts: ServerFacts) -> str | None:
    """Return what a person should change at the server, or None."""
    # Without a limit nothing is ever evicted, whatever the policy.
    if not facts.policy.startswith("allkeys-") or facts.memory_limit == 0:
        return None
    return (
        f"may evict any key when its memory is full (maxmemory-policy {facts.policy}),"
        " also keys of queues and jobs, with the work in them: set it to noeviction"
        " or volatile-lru, or use a server of its own"
    )


def refusal(facts: ServerFacts) -> str | None:
    """Return why the server cannot be used, or None."""
    if facts.flavour == "valkey" or not facts.version or facts.version >= _OLDEST:
        return None
    version = ".".join(map(str, facts.version))
    return f"the server is Redis {version}; Redis 6.2 or newer, or Valkey, is needed"


def parse_facts(reply: Any) -> ServerFacts:
    """Read the reply to `INFO`, as text or as the dictionary of redis-py."""
    facts = reply if isinstance(reply, Mapping) else _pairs(reply)
    limit = facts.get("maxmemory")
    return ServerFacts(
        flavour=str(facts.get("server_name", "redis")),
        version=_version(str(facts.get("redis_version", ""))),
        policy=str(facts.get("maxmemory_policy", "")),
        memory_limit=None if limit is None else int(limit),
    )


def _pairs(reply: bytes | str) -> dict[str, str]:
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else str(reply)
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value for name, separator, value in lines if separator}


def _version(text: str) -> tuple[int, ...]:
    numbers = text.split("-")[0].split(".")
    return tuple(map(int, numbers)) if all(n.isdecimal() for n in numbers) else ()
