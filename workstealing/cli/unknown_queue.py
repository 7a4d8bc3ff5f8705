"""What commands say of a queue that the server does not hold: which ones it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workstealing._printing import on_one_line
from workstealing.cli.consoles import say
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import RedisError, ScheduleNotFound, TaskNotFound
from workstealing.inspecting import Inspector

__all__ = ("looking_it_up", "no_such_queue", "queues_instead", "warn_of_unknown")

_MOST_QUEUES = 20


@contextmanager
def looking_it_up(queue: TaskQueue) -> Iterator[None]:
    """Say so if a task or a schedule is not found because there is no such queue."""
    try:
        yield
    except (TaskNotFound, ScheduleNotFound):
        warn_of_unknown(queue)
        raise


def warn_of_unknown(queue: TaskQueue) -> None:
    """Say on stderr that there is no such queue, if there is none."""
    if problem := no_such_queue(queue):
        say(problem, err=True)


def no_such_queue(queue: TaskQueue) -> str:
    """Say that there is no such queue; empty if there is one."""
    inspector = Inspector(queue)
    if inspector.stat().is_known:
        return ""
    name = f"{queue.name}/{queue.run}"
    instead = queues_instead(inspector)
    return f"there is no queue {name}, or it was never used; {instead}"


def queues_instead(inspector: Inspector) -> str:
    """Name the queues of the server, if it allows them to be listed."""
    try:
        found = inspector.queues()
    except RedisError:
        return "this server does not allow its queues to be listed"
    if not found.names:
        if found.is_all:
            return "this server has no queues"
        if found.unreachable:
            silent = ", ".join(found.unreachable)
            return f"no other queues were found, but {silent} did not answer"
        return "no queues were found among the first keys of this server"
    names = [f"{queue}/{run}" for queue, run in found.names]
    more = ", …" if len(names) > _MOST_QUEUES or not found.is_all else ""
    return f"this server has: {', '.join(map(on_one_line, names[:_MOST_QUEUES]))}{more}"
