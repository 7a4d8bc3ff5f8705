"""Every library of `make bench-peers` is measured through the same few names.

Nothing here imports or starts a peer: their files are read.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers.async_task_bodies import ASYNC_BODIES
from benchmarks.peers.catalogue import LIBRARIES, OURS, RAW, Library
from benchmarks.peers.pages import between_marks
from benchmarks.peers.task_bodies import BODIES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "peers" / "libraries"
BASES = {"AsyncProducer", "BaseProducer"}


def _name(library: Library) -> str:
    return library.name


def test_there_is_one_file_per_library() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}

    assert files == {library.name for library in LIBRARIES}


@pytest.mark.parametrize("library", LIBRARIES, ids=_name)
def test_a_library_has_a_producer_and_a_way_to_work(library: Library) -> None:
    tree = ast.parse((FOLDER / f"{library.name}.py").read_text(encoding="utf-8"))
    functions = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    [producer] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    [base] = [node.id for node in producer.bases if isinstance(node, ast.Name)]
    methods = {
        node.name: [argument.arg for argument in node.args.args[1:]]
        for node in producer.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert ("work" in functions) == (library.command is None)
    assert producer.name == "Producer"
    assert base in BASES
    assert methods["submit"] == ["task", "number"]
    assert methods["result"] == ["submitted"]
    if "submit_many" in methods:
        assert methods["submit_many"] == ["task", "numbers"]
    assert (library.bulk is not None) == (
        "submit_many" in methods or base == "AsyncProducer"
    )


@pytest.mark.parametrize("library", LIBRARIES, ids=_name)
def test_a_library_is_pinned_documented_and_killed(library: Library) -> None:
    if library.name != OURS:
        assert "==" in library.requirements[0]
        assert library.page.startswith("https://")
    assert "default" in library.faults


@pytest.mark.parametrize("library", LIBRARIES, ids=_name)
def test_each_setup_has_the_settings_that_its_command_names(library: Library) -> None:
    setups = [library.settings, library.threads, library.slots]
    setups += [setup.settings for setup in library.faults.values()]

    for settings in setups:
        if settings is not None:
            for text in (library.command or "", *library.variables.values()):
                assert "{" not in text.format(**settings)


def test_tasks_are_the_same_with_and_without_asyncio() -> None:
    assert list(BODIES) == list(ASYNC_BODIES)


def test_features_are_those_of_the_versions_that_are_measured() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    [head] = [line for line in page.splitlines() if line.startswith("| | here ")]

    for library in LIBRARIES:
        # BullMQ is measured, but its features are not in the table.
        if library.name not in (RAW, OURS, "bullmq"):
            version = library.requirements[0].partition("==")[2]
            assert f"{library.title} {'.'.join(version.split('.')[:2])}" in head


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md"])
def test_a_page_has_room_for_the_figures(page: str) -> None:
    between_marks((ROOT / page).read_text(encoding="utf-8"), "figures")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "rq,sidekiq"], "no library is called sidekiq; there are raw, work"),
        (["--workloads", "nap"], "no workload is called nap; there are submit, drain"),
        (["--rounds", "0"], "--rounds must be at least 1"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_are_known(
    arguments: list[str], message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert message in done.stderr
