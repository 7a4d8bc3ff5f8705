"""The call to Redis of a process that runs short tasks in its spare moments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import raw, text, texts
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Argument, Call
from workstealing.tasks.attempt import Delivery, Report
from workstealing.tasks.outcome import outcome_unknown

__all__ = ("BriefExchanged", "brief_exchange")

_script = queue_scripts(__package__)


@dataclass(frozen=True, slots=True)
class BriefExchanged:
    """The result of an exchange in a spare moment."""

    task: Delivery | None
    ability: str
    """The name and version of the task, as `name@version`."""
    refused: tuple[str, ...]
    """Tasks that it reported on when it no longer held their locks."""
    loads: tuple[tuple[str, int], ...]
    """Some workers and the lengths of their deques, if it was given nothing."""
    now_ms: int
    """When it took place, by the clock of the server."""
    is_cancelled: bool = False
    """Somebody asked to cancel the task: it is not to be run."""


def brief_exchange(
    keys: QueueKeys,
    settings: QueueSettings,
    worker: str,
    abilities: Collection[str],
    *,
    reports: Sequence[Report] = (),
    victim: str = "",
    overran: str = "",
) -> Call[BriefExchanged]:
    """Report, and take one task that has one of some abilities; none, to report only.

    It is looked for in the inboxes and lines, then at the back of the *victim*'s deque.
    A task that *overran* and goes back is left to workers.
    """
    flat: list[Argument] = [*abilities]
    for report in reports:
        flat += (report.id, report.token, report.verdict, report.outcome)
        flat.append(report.delay_ms)
    script = _script("brief_exchange")
    return Call(
        script,
        script.keys(
            keys, victim_deque=keys.deque(victim), running=keys.running(worker)
        ),
        script.arguments(
            worker=worker,
            lease_ms=settings.lease_ms,
            want=1 if abilities else 0,
            victim=victim,
            overran=overran,
            renews=0,
            retention_ms=settings.retention_ms,
            most_outcomes=settings.outcomes,
            unknown=outcome_unknown(left=True),
            fitting=len(abilities),
            abilities=flat,
        ),
        partial(_exchanged, shard=keys.shard),
        is_raw=True,
        replicas=settings.replicas if reports else 0,
    )


def _exchanged(reply: Any, shard: int) -> BriefExchanged:
    task, ability, refused, loads, now_ms, is_cancelled = reply
    delivery = None
    if task:
        task_id, token = texts(task[:2])
        delivery = Delivery(task_id, token, task[2], raw(task[3]), shard=shard)
    flat = texts(loads)
    return BriefExchanged(
        delivery,
        text(ability),
        texts(refused),
        tuple((flat[i], int(float(flat[i + 1]))) for i in range(0, len(flat), 2)),
        now_ms,
        bool(is_cancelled),
    )
