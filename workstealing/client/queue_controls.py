"""Counts, pauses and limits of a queue, and waiting until it is empty.

With shards, all of them are asked. Only limits are asked of the first alone: they are
counted in one slot of a Cluster, so all tasks with limits are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workstealing._checks import checked_id, checked_task_name
from workstealing._logs import BackgroundLogger
from workstealing.errors import ConfigurationError, RedisUnavailable, ResultTimeout
from workstealing.queue import (
    inspection_calls,
    limit_calls,
    pause_calls,
    producer_calls,
)
from workstealing.queue.inspection_calls import Counts
from workstealing.queue.limit_calls import LimitState
from workstealing.queue.merged_counts import (
    ended_since,
    merged_counts,
    merged_pauses,
)
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.steps import Flow, Sleep, ask
from workstealing.tasks.limits import checked_limit_key, checked_limit_name

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals

__all__ = ("QueueControls",)

logger = BackgroundLogger(__name__)

_ROUGHLY_DONE_SECONDS = 0.05
# One call tells a thousand lines that wait for a limit of its new numbers. Lines that
# find no room wait again, so there may always be more.
_MOST_SLICES = 1000


class QueueControls:
    """Pauses, limits and counts one queue."""

    def __init__(self, internals: QueueInternals[Any]) -> None:
        self._internals = internals

    def counts(self) -> Flow[Counts]:
        """Count the tasks of all shards, by where they are."""
        parts: list[Counts] = []
        for keys in (yield from self._internals.shards.known()):
            parts.append((yield from ask(inspection_calls.counts(keys))))  # noqa: PERF401
        return merged_counts(parts)

    def end_input(self, *, ended: bool) -> Flow[None]:
        """End the input of all shards, or reopen it."""
        for keys in (yield from self._internals.shards.known(is_fresh=True)):
            yield from ask(producer_calls.end_input(keys, ended=ended))

    def pause(self, task: Any) -> Flow[bool]:
        """Pause tasks of a name, or all of the queue."""
        name, is_new = _paused_name(task), False
        for keys in (yield from self._internals.shards.known(is_fresh=True)):
            is_new |= yield from ask(pause_calls.pause(keys, name))
        return is_new

    def resume(self, task: Any) -> Flow[bool]:
        """Resume tasks of a name, or all of the queue."""
        name, was_paused = _paused_name(task), False
        for keys in (yield from self._internals.shards.known(is_fresh=True)):
            was_paused |= yield from pause_calls.resume_all(keys, name)
        return was_paused

    def pauses(self) -> Flow[Pauses]:
        """Read what is paused, in any shard."""
        parts: list[Pauses] = []
        for keys in (yield from self._internals.shards.known()):
            parts.append((yield from ask(pause_calls.read_pauses(keys))))  # noqa: PERF401
        return merged_pauses(parts)

    def end_letter(self, task_id: str, *, drop: bool) -> Flow[bool]:
        """Put a dead letter back into the queue, or delete it."""
        keys = yield from self._internals.keys_of(checked_id(task_id))
        return (yield from ask(producer_calls.replay(keys, task_id, drop=drop)))

    def limits(self, name: str | None, key: Any) -> Flow[tuple[LimitState, ...]]:
        """Describe limits, and how much of them is in use."""
        wanted = "" if name is None else checked_limit_name(name)
        call = limit_calls.describe_limits(
            self._internals.keys, wanted, "" if key is None else checked_limit_key(key)
        )
        found = yield from ask(call)
        if name is not None and not found:
            raise self._unknown_limit(name)
        return found

    def set_limit(self, name: str, numbers: str) -> Flow[None]:
        """Set the numbers of a limit, or go back to those of the code."""
        checked_limit_name(name)
        for _ in range(_MOST_SLICES):
            done = yield from ask(
                limit_calls.set_limit(self._internals.keys, name, numbers)
            )
            if not done.is_known:
                raise self._unknown_limit(name)
            if done.is_other_kind:
                kind, wanted = "run at once", "concurrency"
                if "/" not in numbers:
                    kind, wanted = "begin in a time", "rate and period"
                raise ConfigurationError(
                    f"{name} is a limit on how many {kind}: give {wanted}"
                )
            if not done.has_more:
                return

    def _unknown_limit(self, name: str) -> ConfigurationError:
        return ConfigurationError(
            f"queue '{self._internals.full_name}' has no limit {name}: a limit is known"
            " once a task that has it was submitted; limits() lists all"
        )

    def wait(self, timeout: float | None) -> Flow[Counts]:
        """Wait until no task waits or runs any more."""
        end = None if timeout is None else self._internals.clock.monotonic() + timeout
        name = self._internals.full_name
        before: Counts | None = None
        absence: RedisUnavailable | None = None
        while True:
            try:
                seen = yield from self.counts()
                is_empty = seen.unfinished <= 0
                if is_empty and not (
                    self._internals.shards.are_several and ended_since(before, seen)
                ):
                    return seen
                absence, before = None, seen if is_empty else None
                if is_empty:
                    continue
                left = f"{seen.unfinished} tasks of queue '{name}' still wait or run"
                if seen.unfinished == 1:
                    left = f"1 task of queue '{name}' still waits or runs"
                left += "".join(f"; {one}" for one in seen.pauses.sentences())
            except RedisUnavailable as error:
                if absence is None:
                    logger.warning(
                        "the server is not available; still waiting for queue '%s': %s",
                        name,
                        error,
                    )
                absence = error
                left = f"the server is not available: {error}"
            if end is not None and self._internals.clock.monotonic() >= end:
                raise ResultTimeout(f"after {timeout:g} s, {left}") from absence
            yield Sleep(_ROUGHLY_DONE_SECONDS)


def _paused_name(task: Any) -> str | None:
    """Return the name of a task, or of what is given by name; None means all tasks."""
    if task is None:
        return None
    name = checked_task_name(getattr(task, "name", task))
    if name == "*":
        raise ConfigurationError(
            "a task named '*' cannot be paused alone, because that is how the whole"
            " queue is written down: give no name to pause the queue"
        )
    return name
