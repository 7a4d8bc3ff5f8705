"""The package stays as easy to enter as it is.

`measure.py` says what is measured and how. A journey may become shorter; to make one
longer, say why in `docs/architecture.md`. How large the package is, it only reports.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workstealing.drivers.embedded import server_binary
from workstealing.errors import MissingExtra
from workstealing.testing.plugin import missing

# On a busy machine a heartbeat falls into each of the tasks that are followed. What is
# inside of a queue is three files since it was divided: submitting, outcomes, the rest.
# A worker that joins asks how many shards there are.
MOST_FILES = {
    "task": 33,
    "task_with_its_worker": 50,
    "enlist": 8,
    "enlist_observed": 10,
}
MEDIAN_LINES = range(100, 201)

# Not numbers that a user gives to the library: the id of a message on the wire, and
# numbers inside a payload.
CHECKED_ELSEWHERE = {
    "workstealing/node/node.py",
    "workstealing/tasks/json_values.py",
    "workstealing/tasks/signature.py",
}


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "architecture_measure", Path(__file__).with_name("measure.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


measuring = _load()


@pytest.fixture(scope="module")
def passed() -> Any:
    """The files that a task and a call pass through."""
    try:
        server_binary()
    except MissingExtra as error:
        missing(str(error))
    return measuring.passed()


def test_no_two_modules_have_the_same_name() -> None:
    assert measuring.twins().modules == {}


def test_no_two_classes_have_the_same_name() -> None:
    assert measuring.twins().classes == {}


def test_numbers_that_users_give_are_checked_in_one_place() -> None:
    places = {check.partition(":")[0] for check in measuring.number_checks()}

    assert places - CHECKED_ELSEWHERE == {"workstealing/_checks.py"}


def test_a_file_is_neither_a_fragment_nor_a_heap() -> None:
    assert measuring.sizes().median_lines in MEDIAN_LINES


@pytest.mark.parametrize(
    "journey", ["task", "task_with_its_worker", "enlist", "enlist_observed"]
)
def test_a_journey_passes_through_few_files(journey: str, passed: Any) -> None:
    files = getattr(passed, journey)

    assert files
    assert len(files) <= MOST_FILES[journey], files


def test_a_measured_journey_passes_what_everybody_knows(passed: Any) -> None:
    task, enlist = passed.task, passed.enlist

    assert {"client/task.py", "workers/loop.py", "client/handle.py"} <= set(task)
    assert "recruiting/recruiter.py" in enlist


def test_lines_of_logic_leave_out_what_only_explains_or_imports() -> None:
    text = '''"""Doc."""
import os

__all__ = ()

def f():
    # why
    return os
'''

    assert measuring.lines_of_logic(text) == {6, 8}
