"""The calls to Redis of a process that runs short tasks in its spare moments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import deliveries, deque_lengths, texts
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call
from workstealing.queue.worker_calls import flat_reports
from workstealing.tasks.attempt import Delivery, Report
from workstealing.tasks.outcome import outcome_unknown

__all__ = ("BriefExchanged", "StillHeld", "brief_exchange", "keep_lease")

_script = queue_scripts(__package__)


@dataclass(frozen=True, slots=True)
class BriefExchanged:
    """The result of an exchange in a spare moment."""

    tasks: tuple[Delivery, ...]
    abilities: tuple[str, ...]
    """The name and version of each task, as `name@version`."""
    refused: tuple[str, ...]
    """Tasks that it reported on when it no longer held their locks."""
    loads: tuple[tuple[str, int], ...]
    """Some workers and the lengths of their deques, if it was given nothing."""
    now_ms: int
    """When it took place, by the clock of the server."""
    cancelled: tuple[str, ...] = ()
    """Those of the tasks that somebody asked to cancel: they are not to be run."""
    parked: tuple[str, ...] = ()
    """Abilities that fit, and that tasks are parked for, if it was given nothing."""


@dataclass(frozen=True, slots=True)
class StillHeld:
    """What a process has in hand; nothing, if it has lost its lease."""

    tasks: tuple[str, ...]
    cancelled: tuple[str, ...]
    """Those of them that it is asked to stop."""

    @staticmethod
    def read(reply: Any) -> StillHeld:
        """Read the reply of the script."""
        return StillHeld(*map(texts, reply))


def brief_exchange(
    keys: QueueKeys,
    settings: QueueSettings,
    worker: str,
    abilities: Collection[str],
    *,
    want: int = 1,
    reports: Sequence[Report] = (),
    victim: str = "",
    overran: str = "",
    runs_on: bool = False,
) -> Call[BriefExchanged]:
    """Report, and take tasks that have one of some abilities; none, to report only.

    They are looked for in the inboxes and lines, or else one at the back of the
    *victim*'s deque. A task that *overran* is left to workers; they get it when the
    lease has ended, if it *runs_on*.
    """
    script = _script("brief_exchange")
    return Call(
        script,
        script.keys(
            keys, victim_deque=keys.deque(victim), running=keys.running(worker)
        ),
        script.arguments(
            worker=worker,
            lease_ms=settings.lease_ms,
            want=want if abilities else 0,
            victim=victim,
            overran=overran,
            runs_on=int(runs_on),
            renews=0,
            retention_ms=settings.retention_ms,
            most_outcomes=settings.outcomes,
            unknown=outcome_unknown(left=True),
            fitting=len(abilities),
            abilities_and_reports=(*abilities, *flat_reports(reports)),
        ),
        partial(_exchanged, shard=keys.shard),
        is_raw=True,
        replicas=settings.replicas if reports else 0,
    )


def keep_lease(
    keys: QueueKeys, settings: QueueSettings, worker: str
) -> Call[StillHeld]:
    """Renew the lease of a process while a task takes long."""
    script = _script("keep_lease")
    return Call(
        script,
        script.keys(keys, running=keys.running(worker)),
        script.arguments(worker=worker, lease_ms=settings.lease_ms),
        StillHeld.read,
        is_raw=True,
    )


def _exchanged(reply: Any, shard: int) -> BriefExchanged:
    tasks, abilities, refused, loads, now_ms, cancelled, parked, befell = reply
    return BriefExchanged(
        deliveries(tasks, shard, befell),
        texts(abilities),
        texts(refused),
        deque_lengths(loads),
        now_ms,
        texts(cancelled),
        texts(parked),
    )
