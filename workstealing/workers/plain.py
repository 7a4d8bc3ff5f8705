"""The sync face of an asyncio queue: workers speak to Redis from threads."""

from __future__ import annotations

from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.errors import ConfigurationError

__all__ = ("plain",)


def plain(queue: TaskQueue | AsyncTaskQueue) -> TaskQueue:
    """Return the queue itself, or one that shares everything but the client."""
    if isinstance(queue, TaskQueue):
        return queue
    if queue.redis is not None and not isinstance(queue.redis, str):
        raise ConfigurationError(
            f"{queue!r} has an asyncio client, which a worker's threads cannot share:"
            " give it a URL, or name a TaskQueue(…, registry=queue.registry) beside it"
        )
    twin = TaskQueue(queue.name, redis=queue.redis, run=queue.run)
    twin.registry, twin.admission = queue.registry, queue.admission
    twin.settings, twin.keys, twin.giving = queue.settings, queue.keys, queue.giving
    return twin
