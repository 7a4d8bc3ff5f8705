"""The keys of a queue, an attribute or method each.

All keys of one queue and run share a hash tag, so that each script runs in one slot. A
queue with shards has all of them once per shard, each shard with a tag of its own. The
first shard has the tag of a queue without shards. The other tags have a second slash,
so they are never those of another queue: names of queues and runs contain none.
Names are checked once, when the queue is made; here they are only joined. The headers
of the scripts, `lua/*.lua`, say what each key holds.
"""

from __future__ import annotations

from collections.abc import Callable

from workstealing.queue.placement import tag_of_shard
from workstealing.queue.scripts import Script, load_script

__all__ = ("QueueKeys", "queue_scripts")

# Scripts and workers whose keys are kept, for each queue of a process.
_KEPT = 1000


class QueueKeys:
    """Names the keys of one shard of one run of a queue."""

    def __init__(self, queue: str, run: str, shard: int = 0) -> None:
        self.shard = shard
        tag = tag_of_shard(f"{queue}/{run}", shard)
        self.prefix = prefix = f"ws:{{{tag}}}:"
        self.inboxes = tuple(f"{prefix}inbox:{priority}" for priority in range(3))
        self.task = f"{prefix}task"
        self.lock = f"{prefix}lock"
        self.done = f"{prefix}done"
        self.outcome_times = f"{prefix}outcome_times"
        self.purged = f"{prefix}purged"
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
        self.biographies = f"{prefix}biographies"
        self.cancelling = f"{prefix}cancelling"
        self.cancelled = f"{prefix}cancelled"
        self.priorities = f"{prefix}priorities"
        self.awaited = f"{prefix}awaited"
        self.abilities = f"{prefix}abilities"
        self.parked = f"{prefix}parked"
        self.parked_abilities = f"{prefix}parked_abilities"
        self.uniques = f"{prefix}uniques"
        self.unique_of = f"{prefix}unique_of"
        self.unique_windows = f"{prefix}unique_windows"
        self.paused = f"{prefix}paused"
        self.paused_tasks = f"{prefix}paused_tasks"
        self.aside = f"{prefix}aside"
        self.schedules = f"{prefix}schedules"
        self.ticks = f"{prefix}ticks"
        self.firings = f"{prefix}firings"
        self.declared_schedules = f"{prefix}declared_schedules"
        self.paused_schedules = f"{prefix}paused_schedules"
        self.removed_schedules = f"{prefix}removed_schedules"
        self.lines = f"{prefix}lines"
        self.turns = tuple(f"{prefix}turns:{priority}" for priority in range(3))
        self.ready = f"{prefix}ready"
        self.heads = f"{prefix}heads"
        self.placed = f"{prefix}placed"
        self.blocked = f"{prefix}blocked"
        self.permits = f"{prefix}permits"
        self.permit_holders = f"{prefix}permit_holders"
        self.limits = f"{prefix}limits"
        self.rates = f"{prefix}rates"
        self.refills = f"{prefix}refills"
        self.followers = f"{prefix}followers"
        self.steps = f"{prefix}steps"
        self.groups = f"{prefix}groups"
        self.group_times = f"{prefix}group_times"
        self.too_long = f"{prefix}too_long"
        self.thefts = f"{prefix}thefts"
        self.releases = f"{prefix}releases"
        self._of_workers: dict[tuple[str, str], tuple[str, ...]] = {}

    def shared(self) -> tuple[str, ...]:
        """Return all keys but those of one worker, task or ability."""
        own = {"prefix", "shard", "_of_workers"}
        values = [value for name, value in vars(self).items() if name not in own]
        names = [value for value in values if isinstance(value, str)]
        return (*self.inboxes, *self.turns, *names)

    def deque(self, worker: str) -> str:
        """List of the tasks that a worker has not begun."""
        return f"{self.prefix}deque:{worker}"

    def running(self, worker: str) -> str:
        """Hash of the tasks that a worker has taken, with the times."""
        return f"{self.prefix}running:{worker}"

    def parked_for(self, ability: str) -> str:
        """Sorted set of the tasks that wait for a worker with an ability."""
        return f"{self.prefix}parked:{ability}"

    def log(self, task_id: str) -> str:
        """Stream of what a task logged and printed, if its caller asked for it."""
        return f"{self.prefix}log:{task_id}"

    def notes(self, task_id: str) -> str:
        """Hash of the progress and the checkpoint of a task that noted any."""
        return f"{self.prefix}notes:{task_id}"

    def ten_minutes(self, number: int) -> str:
        """Hash of what ended in each of ten minutes, by task name; it expires."""
        return f"{self.prefix}ten_minutes:{number}"

    def hundred_minutes(self, number: int) -> str:
        """Hash of what ended in each ten of a hundred minutes; it expires."""
        return f"{self.prefix}hundred_minutes:{number}"

    def of_worker(self, script: Script, worker: str) -> tuple[str, ...]:
        """Return the keys of a script on one worker's `deque` and `running`.

        They are kept: a worker asks for the same ones with each exchange.
        """
        known = self._of_workers.get((script.sha, worker))
        if known is None:
            if len(self._of_workers) >= _KEPT:
                self._of_workers.clear()
            known = script.keys(
                self, deque=self.deque(worker), running=self.running(worker)
            )
            self._of_workers[script.sha, worker] = known
        return known

    def channel(self, subscriber: str) -> str:
        """Channel on which outcomes are published to one subscriber; not a key."""
        return f"{self.prefix}outcomes:{subscriber}"


_SHARED = frozenset(name for name in vars(QueueKeys("", "")) if name[0] != "_")


def queue_scripts(package: str) -> Callable[[str], Script]:
    """Return a function that loads scripts of a package on the keys of a queue.

    A key in the header of a script that is an attribute of `QueueKeys` is taken from
    there: `script.keys(queue_keys, deque=…, …)`. Callers name the others: those of one
    worker, task or ability.
    """

    def load(name: str) -> Script:
        return load_script(package, name, _SHARED)

    return load
