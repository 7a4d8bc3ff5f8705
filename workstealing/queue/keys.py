"""The keys of a queue, a method or attribute each.

All keys of one queue and run share a hash tag, so that each script lives in one slot.
Names are checked once, when the queue is made; here they are only joined.
"""

from __future__ import annotations

__all__ = ("QueueKeys",)


class QueueKeys:
    """Names the keys of one run of a queue."""

    def __init__(self, queue: str, run: str) -> None:
        self.prefix = prefix = f"ws:{{{queue}/{run}}}:"
        self.inboxes = tuple(f"{prefix}inbox:{priority}" for priority in range(3))
        self.task = f"{prefix}task"
        self.lock = f"{prefix}lock"
        self.done = f"{prefix}done"
        self.outbox = f"{prefix}outbox"
        self.later = f"{prefix}later"
        self.dead = f"{prefix}dead"
        self.workers = f"{prefix}workers"
        self.members = f"{prefix}members"
        self.loads = f"{prefix}loads"
        self.bell = f"{prefix}bell"
        self.upkeep = f"{prefix}upkeep"
        self.control = f"{prefix}control"
        self.stats = f"{prefix}stats"
        self.history = f"{prefix}history"
        self.cancels = f"{prefix}cancels"
        self.awaited = f"{prefix}awaited"
        self.graves = f"{prefix}graves"
        self.able = f"{prefix}able"
        self.parkings = f"{prefix}parkings"
        self.parked = f"{prefix}parked"

    def channel(self, waiter: str) -> str:
        """Where outcomes are told to one who waits; a channel, not a key."""
        return f"{self.prefix}told:{waiter}"

    def deque(self, worker: str) -> str:
        """List of the tasks that a worker has not begun."""
        return f"{self.prefix}queues:{worker}:inbox"

    def running(self, worker: str) -> str:
        """Hash of the tasks that a worker has taken, and when."""
        return f"{self.prefix}queues:{worker}:running"

    def parked_for(self, ability: str) -> str:
        """List of the tasks that wait for a worker with an ability."""
        return f"{self.prefix}parked:{ability}"

    def log(self, task_id: str) -> str:
        """Stream of what a task logged and printed, if its caller asked for it."""
        return f"{self.prefix}log:{task_id}"

    def notes(self, task_id: str) -> str:
        """Hash of the progress and the checkpoint of a task that noted any."""
        return f"{self.prefix}notes:{task_id}"
