"""What is asked of Redis about limits: their numbers, and who waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.steps import Call

__all__ = ("LimitSet", "set_limit")

_script = queue_scripts(__package__)


@dataclass(frozen=True, slots=True)
class LimitSet:
    """Whether a limit was set, and whether to call again."""

    is_known: bool
    has_more: bool


def set_limit(
    keys: QueueKeys, name: str, numbers: str, *, most: int = 1000
) -> Call[LimitSet]:
    """Set the numbers of a limit; without any, go back to those of the code."""
    script = _script("set_limit")

    def parse(reply: Any) -> LimitSet:
        return LimitSet(*map(bool, reply))

    arguments = script.arguments(name=name, numbers=numbers, most=most)
    return Call(script, script.keys(keys), arguments, parse)
