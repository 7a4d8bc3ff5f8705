"""After what a task is run again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workstealing.chance import SYSTEM_CHANCE
from workstealing.errors import ConfigurationError, StopWork
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import Attempt, Delivery, Report
from workstealing.tasks.context import control_of
from workstealing.tasks.definition import define
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.registry import Registry
from workstealing.tasks.retry import Retry, stricter
from workstealing.tasks.runner import TaskRunner


def work() -> None:
    """Do nothing."""


def attempt_at(said: str = "", **options: Any) -> tuple[TaskRunner, Attempt]:
    registry = Registry()
    registry.add(define(work, "work", **options))
    output: Any = None
    admission = Admission(registry, None, None)
    runner = TaskRunner(admission, "w.0", "q", SYSTEM_CHANCE, output)
    envelope = {"v": 1, "name": "work", "version": 1, "payload": {}, "retries": 5}
    if said:
        envelope["restart"] = said
    attempt = runner.prepare(Delivery("id", "7", 1, json.dumps(envelope).encode()))
    assert isinstance(attempt, Attempt)
    return runner, attempt


def outcome(report: Report | None) -> TaskOutcome:
    assert report is not None
    return TaskOutcome.read(report.outcome)


@pytest.mark.parametrize(
    ("options", "restart"),
    [
        ({}, "always"),
        ({"restart": "always", "retries": 3}, "always"),
        ({"restart": "on-crash"}, "on-crash"),
        ({"restart": "never"}, "never"),
        ({"idempotent": False}, "never"),
        ({"idempotent": False, "restart": "never"}, "never"),
    ],
)
def test_restart_and_idempotent_mean_one_thing(
    options: dict[str, Any], restart: str
) -> None:
    assert define(work, **options).restart == restart


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"restart": "sometimes"}, "one of always, on-crash, never"),
        ({"idempotent": False, "restart": "always"}, "not idempotent"),
        ({"idempotent": False, "restart": "on-crash"}, "not idempotent"),
        ({"restart": "on-crash", "retries": 1}, "1 retries"),
        ({"restart": "never", "retries": 2}, 'restart="never" forbids'),
        ({"idempotent": False, "retries": 2}, "2 retries .* idempotent=False forbids"),
    ],
)
def test_what_contradicts_itself_is_refused(options: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        define(work, **options)


def test_the_stricter_of_two_wishes_counts() -> None:
    assert stricter("always", "never") == "never"
    assert stricter("on-crash", "always") == "on-crash"
    assert stricter("never", "on-crash") == "never"
    assert stricter("always", "always") == "always"


@pytest.mark.parametrize("error", [ValueError("no"), Retry(after=1)])
@pytest.mark.parametrize("restart", ["on-crash", "never"])
def test_one_that_raised_is_not_tried_again(restart: Any, error: Exception) -> None:
    runner, attempt = attempt_at(restart=restart)

    report = runner.reports.raised(attempt, error)

    assert outcome(report).state == "failed"
    assert restart in outcome(report).reason


def test_its_caller_can_forbid_it_too() -> None:
    runner, attempt = attempt_at("never")

    assert attempt.runs_once
    assert outcome(runner.reports.raised(attempt, ValueError())).state == "failed"


def test_by_default_it_is_tried_again() -> None:
    runner, attempt = attempt_at()

    assert not attempt.runs_once
    assert runner.reports.raised(attempt, ValueError()).verdict == "retry"


def test_one_that_was_stopped_comes_back() -> None:
    runner, attempt = attempt_at(restart="on-crash")

    attempt.is_interrupted = True
    report = runner.stopped(attempt, str(StopWork("stop")))

    assert report is not None
    assert report.verdict == "back"


def test_one_that_must_not_be_run_twice_does_not_come_back() -> None:
    runner, attempt = attempt_at(restart="never")

    report = runner.stopped(attempt, "stop")

    assert report is not None
    assert report.verdict == "dead"
    assert outcome(report).reason == "outcome unknown: it was stopped while it ran"


def test_one_that_must_not_be_run_twice_and_lasted_too_long_is_given_up() -> None:
    runner, attempt = attempt_at(restart="never", timeout=2)
    attempt.is_overdue = True

    reason = outcome(runner.stopped(attempt, "stop")).reason

    assert reason == "outcome unknown: it ran for longer than 2 s"


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_when_the_lease_was_lost_it_does_not_come_back_either(
    is_cancelled: bool,
) -> None:
    runner, attempt = attempt_at(restart="never")
    control_of(attempt.context).is_lease_lost = True
    if is_cancelled:
        control_of(attempt.context).is_cancelled = True

    assert outcome(runner.stopped(attempt, "stop")).state == "dead"


def test_one_that_heeds_its_cancellation_is_cancelled() -> None:
    runner, attempt = attempt_at(restart="never")
    control_of(attempt.context).is_cancelled = True

    assert outcome(runner.stopped(attempt, "stop")).state == "cancelled"
