"""A task that this worker cannot run goes to one that can.

At once, if a live worker is known to be able; else it is parked until one joins. No
attempt is counted. So old and new releases may run side by side.
"""

from __future__ import annotations

import logging

from workstealing.queue import handing
from workstealing.queue.call import Flow, ask
from workstealing.queue.consuming import park
from workstealing.tasks.attempt import Unable
from workstealing.workers.member import Member

__all__ = ("hand_over",)

logger = logging.getLogger(__name__)


def hand_over(member: Member, unable: Unable) -> Flow[None]:
    """Give a task to an able worker, or park it."""
    keys, task, ability = member.keys, unable.task, unable.ability
    able = yield from ask(handing.find_able(keys, ability, but=member.name))
    if able and (yield from ask(handing.hand_over(keys, member.name, task, able))):
        logger.debug("task %s needs %s; handed over to %s", task.id, ability, able)
        return
    if (yield from ask(park(keys, member.name, task, ability))):
        logger.warning("task %s needs %s; parked", task.id, ability)
