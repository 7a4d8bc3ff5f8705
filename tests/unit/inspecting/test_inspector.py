"""The sync and the asyncio inspector are alike."""

from __future__ import annotations

import inspect

from workstealing.inspecting import AsyncInspector, Inspector


def test_both_inspectors_have_the_same_methods_parameters_and_docstrings() -> None:
    names = [name for name in vars(Inspector) if not name.startswith("_")]

    assert names == [name for name in vars(AsyncInspector) if not name.startswith("_")]
    for name in names:
        one, other = getattr(Inspector, name), getattr(AsyncInspector, name)
        assert inspect.signature(one) == inspect.signature(other)
        assert inspect.getdoc(one) == inspect.getdoc(other)
        assert inspect.iscoroutinefunction(other)
