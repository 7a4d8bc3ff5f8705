"""What is asked of Redis about limits: their numbers, and who waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import shown
from workstealing.queue.steps import Call

__all__ = (
    "HeldBack",
    "LimitSet",
    "LimitState",
    "LimitUse",
    "describe_limits",
    "full_limits",
    "held_back",
    "set_limit",
)

_script = queue_scripts(__package__)


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How much of a limit one key uses."""

    key: str
    """Empty if the limit has no keys."""
    running: int
    """Tasks that hold a permit; always 0 if the limit is a rate."""
    held_back: int
    """Tasks that wait for the limit."""


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit as it is in force."""

    name: str
    concurrency: int | None
    """Tasks that may run at once; None if the limit is a rate."""
    rate: int | None
    """Tasks that may begin in each period."""
    period: float | None
    """Seconds."""
    is_overridden: bool
    """Somebody has set other numbers than those of the code."""
    keys: tuple[LimitUse, ...]
    """The key that was asked for, or up to a hundred that hold tasks back."""


@dataclass(frozen=True, slots=True)
class LimitSet:
    """Whether a limit was set, and whether to call again."""

    is_known: bool
    has_more: bool
    is_other_kind: bool
    """It limits how many begin and not how many run at once, or the reverse."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Why a task waits in its line."""

    ahead: int
    """Tasks ahead of it in its line; -1 if it is not there."""
    limit_key: str
    """Empty if the line waits for its turn, and not for a limit."""
    most: int
    running: int
    refill_ms: int
    """Until one more may begin; -1 if the limit is not a rate."""

    @property
    def reason(self) -> str:
        """Say by what it is held back, if it is by a limit."""
        if not self.limit_key:
            return ""
        use = f"{self.running:,} of {self.most:,} running"
        if self.refill_ms >= 0:
            have = "has" if self.most == 1 else "have"
            use = f"{self.most:,} {have} begun; the next may begin in"
            use += f" {self.refill_ms / 1000:,.1f} s"
        return f"held back by limit {self.limit_key}: {use}"


def set_limit(
    keys: QueueKeys, name: str, numbers: str, *, most: int = 1000
) -> Call[LimitSet]:
    """Set the numbers of a limit; without any, go back to those of the code."""
    script = _script("set_limit")

    def parse(reply: Any) -> LimitSet:
        known, more = map(int, reply)
        return LimitSet(known > 0, bool(more), known > 1)

    arguments = script.arguments(name=name, numbers=numbers, most=most)
    return Call(script, script.keys(keys), arguments, parse)


def describe_limits(
    keys: QueueKeys, name: str = "", key: str = "", *, most: int = 100
) -> Call[tuple[LimitState, ...]]:
    """Read one limit or all, and how much of them a key uses."""
    script = _script("describe_limits")
    arguments = script.arguments(name=name, key=key, most=most)
    return Call(script, script.keys(keys), arguments, _limit_states)


def held_back(keys: QueueKeys, task_id: str) -> Call[HeldBack]:
    """Read why a task waits in its line."""
    script = _script("held_back")

    def parse(reply: Any) -> HeldBack:
        ahead, limit_key, most, running, refill_ms = reply
        return HeldBack(
            int(ahead), shown(limit_key), int(most), int(running), int(refill_ms)
        )

    return Call(script, script.keys(keys), script.arguments(id=task_id), parse)


def full_limits(keys: QueueKeys, lines: Sequence[bytes]) -> Call[dict[bytes, str]]:
    """Read which limit holds each line back; empty if it waits for its turn."""
    script = _script("full_limits")

    def parse(reply: Any) -> dict[bytes, str]:
        return dict(zip(lines, map(shown, reply), strict=True))

    return Call(script, script.keys(keys), script.arguments(names=lines), parse)


def _limit_states(reply: Any) -> tuple[LimitState, ...]:
    states = []
    for name, numbers, use in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
        in_force, _, of_code = shown(numbers).partition(" ")
        most, _, period_ms = in_force.partition("/")
        keys = (
            LimitUse(shown(limit_key).partition("=")[2], int(running), int(waiting))
            for limit_key, running, waiting in zip(
                use[::3], use[1::3], use[2::3], strict=True
            )
        )
        states.append(
            LimitState(
                name=shown(name),
                concurrency=None if period_ms else int(most),
                rate=int(most) if period_ms else None,
                period=int(period_ms) / 1000 if period_ms else None,
                is_overridden=bool(of_code),
                keys=tuple(keys),
            )
        )
    return tuple(sorted(states, key=lambda state: state.name))
