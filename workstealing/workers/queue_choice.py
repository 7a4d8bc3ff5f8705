"""The queues that a pool works for, as users give them: one, or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from workstealing._checks import checked_number
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import Clock
from workstealing.errors import ConfigurationError
from workstealing.workers.identity import checked_queue
from workstealing.workers.queue_location import QueueLocation, location_of

if TYPE_CHECKING:
    from workstealing.workers.shared_slots import SharedSlots

__all__ = ("AnyQueue", "LocatedChoice", "QueueChoice", "checked_choice")

AnyQueue: TypeAlias = TaskQueue | AsyncTaskQueue


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """Queues in their order, and how they share the workers."""

    queues: tuple[AnyQueue, ...]
    weights: tuple[float, ...]
    strict: bool

    @property
    def are_several(self) -> bool:
        """Whether there is anything to share."""
        return len(self.queues) > 1

    def shared_slots(self, clock: Clock) -> SharedSlots:
        """Return what makes the workers of one process share their slots."""
        # Imported here, since most pools have one queue and do not need it.
        from workstealing.workers.shared_slots import SharedSlots

        return SharedSlots(self.weights, strict=self.strict, clock=clock)

    def located(self) -> LocatedChoice:
        """Return what child processes find the queues by."""
        locations = tuple(map(location_of, self.queues))
        return LocatedChoice(locations, self.weights, self.strict)


@dataclass(frozen=True, slots=True)
class LocatedChoice:
    """The same as names, for a child process."""

    locations: tuple[QueueLocation, ...]
    weights: tuple[float, ...]
    strict: bool

    def find(self) -> QueueChoice:
        """Import the modules, and return their queues."""
        queues = tuple(location.find() for location in self.locations)
        return QueueChoice(queues, self.weights, self.strict)


def checked_choice(
    given: AnyQueue | Iterable[AnyQueue],
    weights: Sequence[float] | None,
    *,
    strict: bool,
) -> QueueChoice:
    """Refuse what cannot be worked for, with a sentence that says why."""
    if isinstance(given, list | tuple):
        queues = tuple(map(checked_queue, given))
        if not queues:
            raise ConfigurationError("a pool needs a queue, and the list is empty")
    else:
        # Of one queue it need not be a list.
        queues = (checked_queue(given),)  # type: ignore[arg-type]
    _refuse_twins(queues)
    if weights is None:
        return QueueChoice(queues, (1.0,) * len(queues), bool(strict))
    if strict:
        raise ConfigurationError(
            "strict=True and weights= exclude each other: give one of them"
        )
    if not isinstance(weights, list | tuple) or len(weights) != len(queues):
        raise ConfigurationError(
            f"weights must be a list of one number for each queue, {len(queues)} in"
            f" all, got {weights!r}"
        )
    numbers = tuple(checked_number(one, "the weight of a queue") for one in weights)
    return QueueChoice(queues, numbers, strict=False)


def _refuse_twins(queues: Sequence[AnyQueue]) -> None:
    for place, queue in enumerate(queues):
        for other in queues[:place]:
            if _is_same(queue, other):
                raise ConfigurationError(
                    f"the queue {queue.name}/{queue.run} is given twice; give it more"
                    " weight if it is to have more of the workers"
                )


def _is_same(one: AnyQueue, other: AnyQueue) -> bool:
    if (one.name, one.run) != (other.name, other.run):
        return False
    given, others = internals_of(one).source.redis, internals_of(other).source.redis
    return one.sync() is other.sync() or given is others or given == others
