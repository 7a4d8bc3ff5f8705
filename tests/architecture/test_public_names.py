"""Every module says exactly what it offers."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import workstealing

ROOT = Path(workstealing.__file__).parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages([str(ROOT)], prefix="workstealing.")
    if not module.ispkg
)


def _tree(name: str) -> ast.Module:
    path = ROOT.parent.joinpath(*name.split(".")).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_opens_with_what_it_is_for(name: str) -> None:
    docstring = ast.get_docstring(_tree(name))

    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("name", MODULES)
def test_all_names_exactly_the_public_definitions(name: str) -> None:
    if name.endswith(".worker_queues"):
        pytest.skip("it needs the settings of a Django project")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith("workstealing.integrations."):
            raise
        pytest.skip(f"its framework is not here: {error}")
    defined = {
        node.name
        for node in _tree(name).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    }
    offered = set(module.__all__)

    assert defined <= offered
    assert all(hasattr(module, public) for public in offered)


def test_the_package_offers_what_it_says() -> None:
    for public in workstealing.__all__:
        assert getattr(workstealing, public).__name__ == public
    assert set(workstealing.__all__) <= set(dir(workstealing))
