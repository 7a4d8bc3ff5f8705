"""SQLAlchemy: submit a task once the session has committed.

    submit_on_commit(session, welcome, user.id)

So no worker looks for rows that are not there yet, and nothing is submitted for rows
that were rolled back, also to a savepoint. It is submitted when the transaction has
ended: the session has returned its connection, and can be used again whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from workstealing.client.task import Task, check_arguments
from workstealing.errors import ConfigurationError

__all__ = ("submit_on_commit",)

P = ParamSpec("P")

_KEY = "workstealing.submit_on_commit"


def submit_on_commit(
    session: Any, task: Task[P, Any], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Submit a task when a session commits its transaction.

    Nothing is submitted if the transaction is rolled back, or the session is closed
    without a commit. The arguments are checked at once. An error of the submission is
    raised by `commit()`; the transaction stays committed, and what was to be submitted
    after that task is not.

    Args:
        session: a `Session`, `scoped_session` or `AsyncSession`.
        task: a task of a `TaskQueue`.
        args: its arguments.
        kwargs: its keyword arguments.
    """
    check_arguments(task, args, kwargs)
    own = _plain_session(session)
    if _KEY not in own.info:
        own.info[_KEY] = _Waiting()
        event.listen(own, "after_commit", _committed)
        event.listen(own, "after_soft_rollback", _rolled_back)
        event.listen(own, "after_transaction_end", _ended)
    if not own.in_transaction():
        own.begin()
    within = own.get_nested_transaction() or own.get_transaction()
    own.info[_KEY].tasks.append((within, lambda: task.submit(*args, **kwargs)))


@dataclass(slots=True)
class _Waiting:
    """What a session submits at the end of its transaction."""

    tasks: list[tuple[SessionTransaction | None, Callable[[], object]]] = field(
        default_factory=list
    )
    """Each with the transaction or savepoint that it belongs to."""
    is_committed: bool = False


def _plain_session(session: Any) -> Session:
    # An AsyncSession has one inside; a scoped_session returns that of this thread.
    own = getattr(session, "sync_session", None) or session
    if not isinstance(own, Session) and hasattr(own, "registry"):
        own = own()
    if not isinstance(own, Session):
        raise ConfigurationError(
            f"session must be a Session, scoped_session or AsyncSession, not {own!r}"
        )
    return own


def _committed(session: Session) -> None:
    # Releasing a savepoint is called a commit, too. What is raised here would leave the
    # session in the middle of its commit.
    if not session.in_nested_transaction():
        session.info[_KEY].is_committed = True


def _rolled_back(session: Session, previous: SessionTransaction) -> None:
    waiting: _Waiting = session.info[_KEY]
    waiting.tasks = [
        (within, submit)
        for within, submit in waiting.tasks
        if not _is_part_of(within, previous)
    ]


def _ended(session: Session, transaction: SessionTransaction) -> None:
    if transaction.parent is not None:
        return
    waiting: _Waiting = session.info[_KEY]
    session.info[_KEY] = _Waiting()
    # A session that is closed has committed nothing of what is still there.
    if waiting.is_committed:
        for _, submit in waiting.tasks:
            submit()


def _is_part_of(within: SessionTransaction | None, outer: SessionTransaction) -> bool:
    while within is not None and within is not outer:
        within = within.parent
    return within is outer
