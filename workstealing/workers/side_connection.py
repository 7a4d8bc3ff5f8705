"""Connects side work of a queue to the server that the queue is on.

Side work has connections of its own, which wait no longer for a reply than a host can
spare. A test may take the queue to another server and back: its side work goes along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from workstealing.client.queue_internals import QueueInternals, Source
from workstealing.drivers.address import target_of

__all__ = ("SideConnection",)

S = TypeVar("S", bound=Source[Any])


class SideConnection(Generic[S]):
    """What side work of a queue connects with; a client that was given is used as is.

    Args:
        parts: of the queue.
        connect: makes a source of what the queue was given.
    """

    def __init__(self, parts: QueueInternals[Any], connect: Callable[[Any], S]) -> None:
        self._parts = parts
        self._connect = connect
        self._source = connect(parts.source.redis)

    @property
    def source(self) -> S:
        """Where to have a driver from now."""
        redis = self._parts.source.redis
        if self._source.redis is not redis:
            self._source = self._connect(redis)
        return self._source

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return target_of(self.source.driver.client)
