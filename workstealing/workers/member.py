"""Who a worker is, to its queue."""

from __future__ import annotations

from dataclasses import dataclass

from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings

__all__ = ("Member",)


@dataclass(frozen=True, slots=True)
class Member:
    """A worker of one run of a queue."""

    keys: QueueKeys
    settings: QueueSettings
    name: str
    """`{pool}.{index}`"""
    incarnation: str
    """Tells it from an earlier one of the same name."""
    description: dict[str, object]
    """For those who look: host, process, and what it can run as `abilities`."""
