"""The package stays as small and as plain as its redesign has made it.

`measure.py` says what is measured and how. A limit here may be lowered; to raise one,
say why in `docs/architecture.md`, which shows the figures.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workstealing.drivers.embedded import server_binary
from workstealing.errors import MissingExtra
from workstealing.testing.plugin import missing

ROOT = Path(__file__).parents[2]

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

LIMITS = {
    "files": 220,
    "lines": 34_600,
    "lines_of_logic": 20_100,
    "task": 30,
    "task_with_its_worker": 38,
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


def test_there_are_few_files_of_a_size_to_read() -> None:
    sizes = measuring.sizes()

    assert sizes.files <= LIMITS["files"]
    assert sizes.median_lines in MEDIAN_LINES


@pytest.mark.parametrize("measure", ["lines", "lines_of_logic"])
def test_the_package_has_not_grown(measure: str) -> None:
    assert getattr(measuring.sizes(), measure) <= LIMITS[measure]


@pytest.mark.parametrize(
    "journey", ["task", "task_with_its_worker", "enlist", "enlist_observed"]
)
def test_a_journey_passes_through_few_files(journey: str, passed: Any) -> None:
    files = getattr(passed, journey)

    assert files
    assert len(files) <= LIMITS[journey], files


def test_a_measured_journey_passes_what_everybody_knows(passed: Any) -> None:
    task, enlist = passed.task, passed.enlist

    assert {"client/task.py", "workers/loop.py", "client/handle.py"} <= set(task)
    assert "recruiting/recruiter.py" in enlist


def test_the_page_shows_what_is_measured(passed: Any) -> None:
    sizes, twins = measuring.sizes(), measuring.twins()
    numbers = {check.partition(":")[0] for check in measuring.number_checks()}

    for row, now in {
        "Python files": sizes.files,
        "lines of a file, median": sizes.median_lines,
        "lines": sizes.lines,
        "lines of logic": sizes.lines_of_logic,
        "files that one task passes from `submit()` to `result()`": len(passed.task),
        "files that one recruited `enlist()` passes": len(passed.enlist),
        "module names used twice": len(twins.modules),
        "class names used twice": len(twins.classes),
        "files that check a user's numbers": len(numbers - CHECKED_ELSEWHERE),
    }.items():
        assert _on_page(row) == pytest.approx(now, rel=0.03), (row, now)


def _on_page(row: str) -> int:
    """Return the figure in the column "after"."""
    found = re.search(
        rf"^\| {re.escape(row)} \| [\d,]+ \| ([\d,]+) \|", PAGE, re.MULTILINE
    )
    assert found is not None, row
    return int(found[1].replace(",", ""))


def test_lines_of_logic_leave_out_what_only_explains_or_imports() -> None:
    text = '''"""Doc."""
import os

__all__ = ()

def f():
    # why
    return os
'''

    assert measuring.lines_of_logic(text) == {6, 8}
