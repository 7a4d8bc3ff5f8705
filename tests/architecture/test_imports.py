"""What a host pays for: `import workstealing` brings no redis, click, rich, asyncio."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.machinery import PathFinder
from importlib.metadata import version
from pathlib import Path

import pytest

import workstealing

FOREIGN = (
    "redis",
    "hiredis",
    "click",
    "rich",
    "asyncio",
    "msgspec",
    "prometheus_client",
)


def _loaded_by(program: str) -> set[str]:
    report = "import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{program}; {report}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_that_a_host_does_not_use() -> None:
    bare = _loaded_by("pass")
    loaded = _loaded_by("import workstealing; workstealing.Recruiter().enlist()")

    assert not (loaded - bare).intersection(FOREIGN)
    assert "workstealing.telemetry.task_events" not in loaded


def test_the_package_tells_its_version() -> None:
    assert workstealing.__version__ == version("workstealing")
    assert "importlib.metadata" not in _loaded_by("import workstealing")


def test_a_package_that_is_not_installed_has_no_known_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])

    assert workstealing.__version__ == "unknown"


def test_names_that_need_more_are_imported_when_asked_for() -> None:
    assert "redis" in _loaded_by("from workstealing import connect")
    assert "redis" not in _loaded_by("from workstealing import AsyncRecruiter")


def test_a_process_that_only_submits_does_not_import_what_runs_tasks() -> None:
    loaded = _loaded_by("from workstealing import TaskQueue")

    assert "workstealing.client.task_queue" in loaded
    assert "workstealing.tasks.runner" not in loaded


def test_an_unknown_name_is_an_attribute_error() -> None:
    import workstealing

    with pytest.raises(AttributeError, match="no_such_name"):
        workstealing.no_such_name  # noqa: B018 - the access is the test


def test_promise_10_nothing_in_the_package_can_unpickle() -> None:
    package = Path(workstealing.__file__).parent
    imports = re.compile(r"^\s*(?:import|from) (?:c?pickle|marshal|shelve)\b", re.M)

    found = [path for path in package.rglob("*.py") if imports.search(path.read_text())]

    assert found == []
