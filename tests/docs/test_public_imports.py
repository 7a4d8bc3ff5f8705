"""Pages and examples import nothing but what is public.

Public is what the places below name in their `__all__`; everything else may change.
Modules are read, not imported: their frameworks may be missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = {
    "workstealing",
    "workstealing.dashboard",
    "workstealing.errors",
    "workstealing.inspecting",
    "workstealing.integrations",
    "workstealing.jobs",
    "workstealing.node",
    "workstealing.telemetry",
    "workstealing.testing",
}
INTEGRATION = re.compile(r"workstealing\.integrations\.[a-z]\w*")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A submodule may be imported whole where several have functions of the same name.
MODULES_OF = {"workstealing", "workstealing.integrations"}

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").rglob("*.py"))


@pytest.mark.parametrize(
    "source",
    [*PAGES, *sorted((ROOT / "examples").rglob("*.md")), *PROGRAMS],
    ids=lambda source: str(source.relative_to(ROOT)),
)
def test_only_public_names_are_imported(source: Path) -> None:
    private = [
        f"{module}.{name}" if name else module
        for module, name in _imported(source)
        if not _is_public(module, name)
    ]

    assert private == []


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_public_place_says_what_it_offers(place: str) -> None:
    assert _offered(place), f"{place} has no __all__"


def _imported(source: Path) -> Iterator[tuple[str, str]]:
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        text = "\n".join(BLOCK.findall(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found = ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found = ((node.module or "", alias.name) for alias in node.names)
        else:
            continue
        for module, name in found:
            if module.partition(".")[0] == "workstealing":
                yield module, name


def _is_public(module: str, name: str) -> bool:
    if module in MODULES_OF and _is_place(f"{module}.{name}"):
        return True
    return _is_place(module) and (not name or name in _offered(module))


def _is_place(module: str) -> bool:
    if INTEGRATION.fullmatch(module):
        return _file_of(module).is_file()
    return module in PLACES


@cache
def _offered(module: str) -> frozenset[str]:
    for node in ast.parse(_file_of(module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def _file_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
