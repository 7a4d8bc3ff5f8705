"""What an editor offers after the dot is what the documentation names, and no more."""

from __future__ import annotations

from typing import Any

import pytest

import workstealing
from workstealing import (
    AsyncRecruiter,
    AsyncTaskClient,
    AsyncTaskQueue,
    ExecutionContext,
    Recruiter,
    TaskClient,
    TaskQueue,
    Worker,
    WorkerPool,
)
from workstealing.client.queue_internals import internals_of

QUEUE = {
    *("name", "run", "registry"),
    *("task", "resource", "use"),
    *("handle", "counts", "wait", "replay", "drop"),
    *("pause", "resume", "paused"),
    *("every", "schedule", "schedules", "schedule_handle", "group_handle"),
    *("count", "cancel_many", "replay_many", "drop_many", "purge"),
    *("end_input", "reopen_input", "close", "sync"),
    *("limits", "set_limit", "reset_limit"),
}
TASK = {
    *("name", "version", "queue", "options"),
    *("submit", "submit_in", "submit_at", "submit_many", "s", "handle"),
}
HANDLE = {
    *("id", "is_new", "found_ended", "state", "result", "cancel", "events"),
    *("logs", "follow", "following"),
}
CLIENT = {"local", "call", "submit"}
RECRUITER = {
    *("install", "job", "load", "load_plugins", "publish", "set_rate"),
    *("setup", "uninstall"),
    *("enlist", "enlisting", "enlists", "hook", "master", "stats"),
    *("run_now", "skip", "ticker", "would_dismiss"),
}
WORKER = {"name", "run", "stats", "stop"}
WORKER_POOL = {
    *("autoscale", "kind", "name", "queues", "stats", "workers"),
    *("quiet", "reload", "scale", "start", "stop", "wait"),
}
CONTEXT = {
    *("id", "name", "version", "attempt", "worker", "queue"),
    *("principal", "roles", "deadline"),
    *("cancelled", "lease_lost", "check", "fence"),
    *("logger", "stdout", "stderr", "progress"),
    *("checkpoint", "save"),
}


def resize(path: str) -> str:
    return path


def _objects() -> list[tuple[Any, set[str]]]:
    queue, async_queue = TaskQueue("listed"), AsyncTaskQueue("listed")
    return [
        (queue, QUEUE),
        (async_queue, QUEUE),
        (queue.task(resize), TASK),
        (async_queue.task(resize), TASK),
        (queue.handle("id"), HANDLE),
        (async_queue.handle("id"), HANDLE),
        (TaskClient(queue), CLIENT),
        (AsyncTaskClient(async_queue), CLIENT),
        (ExecutionContext("id", "resize"), CONTEXT),
        (Recruiter(), RECRUITER),
        (AsyncRecruiter(), RECRUITER),
        (Worker(queue), WORKER),
        (WorkerPool(queue), WORKER_POOL),
    ]


@pytest.mark.parametrize(
    ("thing", "documented"), _objects(), ids=lambda one: type(one).__name__
)
def test_a_completion_list_has_the_documented_names_only(
    thing: Any, documented: set[str]
) -> None:
    assert {name for name in dir(thing) if not name.startswith("_")} == documented


def test_the_package_lists_its_names_and_public_modules_only() -> None:
    listed = {name for name in dir(workstealing) if not name.startswith("_")}

    assert "errors" in listed
    assert listed - set(workstealing.__all__) <= {
        *("dashboard", "errors", "inspecting", "integrations", "jobs"),
        *("node", "telemetry", "testing"),
    }


def test_the_package_itself_reaches_the_internals_of_a_queue() -> None:
    queue = TaskQueue("listed", lease=3.0)

    internals = internals_of(queue)

    assert internals.settings.lease_ms == 3000
    assert internals.admission.registry is queue.registry
    assert internals.keys.prefix == "ws:{listed/default}:"
