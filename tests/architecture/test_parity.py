"""The sync and the asyncio face of a thing have the same methods and parameters."""

from __future__ import annotations

import inspect

import pytest

from workstealing import (
    AsyncRecruiter,
    AsyncTaskClient,
    AsyncTaskQueue,
    AsyncWorkStealer,
    Recruiter,
    TaskClient,
    TaskQueue,
    WorkStealer,
    jobs,
)
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.client.schedule_handle import AsyncScheduleHandle, ScheduleHandle
from workstealing.client.task import AsyncTask, Task
from workstealing.drivers.async_driver import AsyncDriver
from workstealing.drivers.sync_driver import Driver
from workstealing.inspecting import AsyncInspector, Inspector

PAIRS = [
    (Recruiter, AsyncRecruiter),
    (Driver, AsyncDriver),
    (Inspector, AsyncInspector),
    (ScheduleHandle, AsyncScheduleHandle),
    (Task, AsyncTask),
    (TaskHandle, AsyncTaskHandle),
    (TaskClient, AsyncTaskClient),
    (TaskQueue, AsyncTaskQueue),
    (WorkStealer, AsyncWorkStealer),
    *(
        (getattr(jobs, name), getattr(jobs, f"Async{name}"))
        for name in jobs.__all__
        if f"Async{name}" in jobs.__all__
    ),
]


@pytest.mark.parametrize(("sync", "aio"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_faces_have_the_same_methods_and_parameters(sync: type, aio: type) -> None:
    assert _face(sync) == _face(aio)


@pytest.mark.parametrize(("sync", "aio"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_faces_say_the_same(sync: type, aio: type) -> None:
    for name in _face(sync):
        one, other = (
            inspect.getdoc(getattr(sync, name)),
            inspect.getdoc(getattr(aio, name)),
        )
        assert one, name
        assert one.split()[0] == (other or "").split()[0], name


def test_every_ready_made_job_has_both_faces() -> None:
    sync = {name for name in jobs.__all__ if hasattr(getattr(jobs, name), "recruited")}
    for name in sync:
        twin = (
            name.removeprefix("Async") if name.startswith("Async") else f"Async{name}"
        )
        assert twin in sync, name


def _face(kind: type) -> dict[str, list[tuple[str, str, object]]]:
    return {
        name: [
            (parameter.name, parameter.kind.name, parameter.default)
            for parameter in inspect.signature(member).parameters.values()
        ]
        for name, member in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }
