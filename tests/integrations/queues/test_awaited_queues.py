"""arq and SAQ workers keep the hooks that they had, and call them first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workstealing import AsyncRecruiter, Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations import arq, saq


@pytest.fixture
def seen() -> list[tuple[str, int]]:
    """What was called, and how often somebody had enlisted by then."""
    return []


@pytest.fixture
def recruiter() -> AsyncRecruiter:
    """A recruiter without jobs: its calls are counted."""
    return AsyncRecruiter()


@pytest.fixture
def theirs(recruiter: AsyncRecruiter, seen: list[tuple[str, int]]) -> Any:
    """A hook that an application has already."""

    async def theirs(context: Any) -> None:
        seen.append((context["name"], recruiter.stats().calls))

    return theirs


def _named(name: str) -> dict[str, Any]:
    return {"name": name, "worker": SimpleNamespace(job_task_contexts={})}


@pytest.mark.parametrize("is_class", [True, False])
async def test_the_settings_of_arq_keep_their_hooks(
    is_class: bool,
    recruiter: AsyncRecruiter,
    theirs: Any,
    seen: list[tuple[str, int]],
) -> None:
    hooks = {"after_job_end": theirs, "on_startup": theirs}
    settings: Any = type("WorkerSettings", (), hooks) if is_class else dict(hooks)

    assert arq.enlist_after_tasks(settings, recruiter) is settings
    added = vars(settings) if is_class else settings
    context = _named("start")
    await added["on_startup"](context)
    await added["after_job_end"](_named("job"))
    await added["on_shutdown"](context)

    assert seen == [("start", 0), ("job", 0)]
    assert recruiter.stats().calls == 1


@pytest.mark.parametrize("several", [True, False])
async def test_the_settings_of_saq_keep_their_hooks(
    several: bool,
    recruiter: AsyncRecruiter,
    theirs: Any,
    seen: list[tuple[str, int]],
) -> None:
    hook = [theirs] if several else theirs
    settings = {"after_process": hook, "startup": hook}

    assert saq.enlist_after_tasks(settings, recruiter) is settings
    context = _named("start")
    for name, given in (
        ("startup", context),
        ("after_process", _named("job")),
        ("shutdown", context),
    ):
        added = settings[name]
        for each in added if isinstance(added, list) else [added]:
            await each(given)

    assert seen == [("start", 0), ("job", 0)]
    assert recruiter.stats().calls == 1


@pytest.mark.parametrize("module", [arq, saq])
def test_a_recruiter_that_would_block_the_loop_is_refused(module: Any) -> None:
    with pytest.raises(ConfigurationError, match="AsyncRecruiter"):
        module.enlist_after_tasks({}, Recruiter())


@pytest.mark.parametrize("module", [arq, saq])
def test_an_interval_that_is_none_is_refused_before_the_worker_starts(
    module: Any, recruiter: AsyncRecruiter
) -> None:
    with pytest.raises(ConfigurationError, match="idle_every="):
        module.enlist_after_tasks({}, recruiter, idle_every=0)
