"""Side work and the in-process pool need Python's own library, and nothing else.

What they import from this package is followed too. import-linter knows the packages
that it is told of; this test knows all that are not Python's.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workstealing

ROOT = Path(workstealing.__file__).parent


@pytest.mark.parametrize("package", ["recruiting", "pool"])
def test_a_package_imports_nothing_from_elsewhere(package: str) -> None:
    todo = sorted((ROOT / package).rglob("*.py"))
    seen: set[Path] = set()
    foreign: dict[str, set[str]] = {}

    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imported(path):
            top = name.partition(".")[0]
            if top == "workstealing":
                todo.extend(_file_of(name))
            elif top not in sys.stdlib_module_names:
                foreign.setdefault(path.relative_to(ROOT).as_posix(), set()).add(top)

    assert foreign == {}
    assert ROOT / "errors.py" in seen
    assert package != "pool" or ROOT / "_interrupt" / "bytecode.py" in seen


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(name: str) -> list[Path]:
    # Of the package itself nothing: it imports on demand what a host asks for.
    parts = name.split(".")[1:]
    path = ROOT.joinpath(*parts)
    files = (path.with_suffix(".py"), path / "__init__.py") if parts else ()
    return [file for file in files if file.is_file()]
