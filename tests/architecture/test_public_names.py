"""Every module says exactly what it offers."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import workstealing
from workstealing import integrations, telemetry

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


@pytest.mark.parametrize(
    "name", ["", ".dashboard", ".errors", ".inspecting", ".jobs", ".node", ".telemetry"]
)
def test_a_public_package_offers_what_it_says(name: str) -> None:
    package = importlib.import_module(f"workstealing{name}")

    for public in package.__all__:
        named = getattr(package, public)
        if isinstance(named, type):
            assert named.__name__ == public
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018 - the access is the test


def test_the_package_lists_its_names() -> None:
    assert set(workstealing.__all__) <= set(dir(workstealing))


def test_what_a_user_writes_in_annotations_and_configuration_is_public() -> None:
    assert {
        *("AccessPolicy", "AsyncJob", "Inspector", "PUBLIC", "RetryPolicy", "State"),
        *("TaskHandle", "AsyncTaskHandle", "TaskState", "connect_async"),
    } <= set(workstealing.__all__)
    assert {"When", "request_took"} <= set(integrations.__all__)
    assert "Outcome" in telemetry.__all__
