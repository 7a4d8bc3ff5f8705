"""Submits a task once the transaction is committed, and not if it is rolled back."""

from __future__ import annotations

from typing import Any, ParamSpec

from django.db import transaction

from workstealing.client.task import Task, check_arguments

__all__ = ("submit_on_commit",)

P = ParamSpec("P")


def submit_on_commit(task: Task[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
    """Submit a task when the transaction of the default database is committed.

    So no worker looks for rows that are not there yet, and nothing is submitted if the
    transaction is rolled back. Outside of a transaction it is submitted at once. The
    arguments are checked at once in any case.

    An error of the submission is raised where the transaction is committed; the
    transaction stays committed.
    """
    check_arguments(task, args, kwargs)
    transaction.on_commit(lambda: task.submit(*args, **kwargs))
