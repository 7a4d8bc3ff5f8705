"""Celery tells our tasks from those of other applications."""

from __future__ import annotations

import pytest

from workstealing import Recruiter
from workstealing.errors import ConfigurationError

celery = pytest.importorskip("celery")


def test_tasks_of_another_application_do_not_enlist() -> None:
    from workstealing.integrations.celery import enlist_after_tasks

    recruiters = []
    tasks = []
    for name in ("ours", "theirs"):
        app = celery.Celery(name, broker="memory://", set_as_current=False)
        app.conf.task_always_eager = True
        recruiters.append(Recruiter())
        enlist_after_tasks(app, recruiters[-1])
        tasks.append(app.task(_nothing, name=f"{name}.task"))

    tasks[0].delay()
    tasks[0].delay()
    tasks[1].delay()

    assert [recruiter.stats().calls for recruiter in recruiters] == [2, 1]


def test_an_interval_that_is_none_is_refused_at_once() -> None:
    from workstealing.integrations.celery import enlist_after_tasks

    app = celery.Celery("app", broker="memory://", set_as_current=False)

    with pytest.raises(ConfigurationError, match="idle_every="):
        enlist_after_tasks(app, Recruiter(), idle_every=0)


def _nothing() -> None:
    return None
