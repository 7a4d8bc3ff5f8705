"""Which tasks of a submission go to which shard.

- Tasks with a limit go to the first shard: limits are counted in one slot.
- A unique task goes by its unique key, a task with an id by its shard key or its id. An
  id that was drawn, or looks like one, names its shard.
- A task that was there when there were fewer shards stays where it was.
- All other tasks go to each node in turn, and there to each of its shards; those that
  are submitted together, a few hundred at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workstealing.client.shards import Shards
from workstealing.errors import ConfigurationError
from workstealing.queue.keys import QueueKeys
from workstealing.queue.placement import grouped, id_in_shard, shard_in_id
from workstealing.queue.steps import Flow
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.submission import (
    Submission,
    SubmitOptions,
    has_limits,
    new_ids,
)
from workstealing.tasks.unique import unique_key

__all__ = ("ShardPart", "joined_parts", "spread_over_shards")


@dataclass(frozen=True, slots=True)
class ShardPart:
    """The tasks of a submission that go to one shard."""

    keys: QueueKeys
    positions: Sequence[int]
    """Their positions in the whole submission."""
    ids: list[str]


def spread_over_shards(
    shards: Shards,
    task: TaskInterface,
    payloads: Sequence[bytes],
    options: SubmitOptions,
    names: Sequence[str] | None,
) -> Flow[list[ShardPart]]:
    """Choose the shard of each task; draw ids if the caller gave none."""
    yield from shards.known()
    ids = new_ids(len(payloads)) if names is None else names
    if has_limits(task):
        places = [0] * len(ids)
        if names is not None:
            places = yield from shards.homes_of_limited(names)
            _check_names(names, places, len(shards.all))
    elif task.unique is not None:
        unique = [unique_key(task.unique, task.signature, one) for one in payloads]
        places = yield from shards.homes_of_unique_keys(unique, names)
        _check_names(names or (), places, len(shards.all))
    elif options.shard_key is not None and names is not None:
        places = yield from shards.homes_of_keyed(names, options.shard_key)
    elif options.shard_key is not None:
        places = [shards.of_key(options.shard_key)] * len(ids)
    elif names is not None:
        places = yield from shards.homes_of_ids(names)
    else:
        places = shards.next_homes(len(ids))
    return [
        ShardPart(
            shards.all[one],
            positions,
            [
                ids[at] if names is not None else id_in_shard(ids[at], one)
                for at in positions
            ],
        )
        for one, positions in grouped(places).items()
    ]


def _check_names(names: Sequence[str], places: Sequence[int], shards: int) -> None:
    """Refuse ids that name another shard than the one that their tasks go to."""
    for name, place in zip(names, places, strict=False):
        named = shard_in_id(name)
        if named is not None and named < shards and named != place:
            raise ConfigurationError(
                f"the id {name!r} looks like one that was drawn for shard {named}, and"
                f" a task with a limit or a unique key goes to shard {place}: choose an"
                " id of another form"
            )


def joined_parts(
    parts: Sequence[ShardPart], submissions: Sequence[Submission]
) -> Submission:
    """Join the submissions to several shards, in the order of the tasks."""
    ids: dict[int, str] = {}
    known: set[int] = set()
    ended: dict[int, str] = {}
    for part, submission in zip(parts, submissions, strict=True):
        ids.update(zip(part.positions, submission.ids, strict=True))
        known.update(part.positions[at] for at in submission.known)
        for at, state in submission.ended.items():
            ended[part.positions[at]] = state
    return Submission([ids[at] for at in sorted(ids)], frozenset(known), ended)
