"""After which requests to enlist."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing import Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations.conditions import (
    When,
    enlist_after_request,
    note_request_time,
    request_took,
)
from workstealing.recruiting.async_recruiter import AsyncRecruiter


def test_always_takes_all_that_have_a_response() -> None:
    assert When.always().allows(500, 100.0, None)


@pytest.mark.parametrize(
    ("status", "allowed"),
    [(199, False), (200, True), (299, True), (301, False), (304, True), (500, False)],
)
def test_fine_takes_2xx_and_304(status: int, allowed: bool) -> None:
    assert When.fine().allows(status, 100.0, None) is allowed


@pytest.mark.parametrize(("took", "allowed"), [(0.049, True), (0.05, False)])
def test_quick_takes_what_took_less(took: float, allowed: bool) -> None:
    assert When.quick(0.05).allows(200, took, None) is allowed


def test_quick_does_not_take_a_quick_error() -> None:
    assert not When.quick(0.05).allows(500, 0.001, None)


def test_asked_takes_nobody_who_does_not_ask() -> None:
    assert not When.asked().allows(200, 0.001, None)
    assert When.asked().allows(200, 0.001, True)


@pytest.mark.parametrize(
    "when", [When.always(), When.fine(), When.quick(0.05), When.asked()]
)
def test_a_view_overrides_all(when: When) -> None:
    assert when.allows(500, 100.0, True)
    assert not when.allows(200, 0.001, False)


def test_conditions_add_up() -> None:
    when = When(statuses=range(200, 205), below=1.0)

    assert when.allows(204, 0.5, None)
    assert not when.allows(205, 0.5, None)
    assert not when.allows(204, 1.5, None)


def test_statuses_of_a_generator_last() -> None:
    when = When(statuses=(status for status in (200, 201)))

    assert when.allows(201, 0.0, None)
    assert when.allows(201, 0.0, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"statuses": 200},
        {"statuses": []},
        {"statuses": ["200"]},
        {"statuses": {99}},
        {"statuses": {600}},
        {"below": 0},
        {"below": -1.0},
        {"below": float("nan")},
        {"below": "50ms"},
        {"only_asked": "yes"},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        When(**wrong)


def test_a_job_can_ask_how_long_the_request_took() -> None:
    told: list[float | None] = []
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: told.append(request_took()), "job", rate=1.0)

    enlist_after_request(recruiter, 0.25)

    assert told == [0.25]
    assert request_took() is None


async def test_a_job_in_a_thread_can_ask_how_long_the_request_took() -> None:
    told: list[float | None] = []
    recruiter = AsyncRecruiter(share=None)
    recruiter.install(lambda: told.append(request_took()), "job", rate=1.0)

    note_request_time(0.25)
    await recruiter.enlist()

    assert told == [0.25]
