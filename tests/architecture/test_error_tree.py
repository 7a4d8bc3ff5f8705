"""The tree of errors that opens `errors.py` is that of the classes."""

from __future__ import annotations

import re

from workstealing import errors


def drawn() -> dict[str, str]:
    """Return the parent of each error in the drawing."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if line.startswith("WorkStealingError"):
            path = ["WorkStealingError"]
        elif found := re.match(r"([│ ]*)[├└]── (\w+) ", line):
            depth = len(found[1]) // 4 + 1
            parents[found[2]] = path[depth - 1]
            path = [*path[:depth], found[2]]
    return parents


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]
    real = {
        one.__name__: one.__bases__[0].__name__
        for one in classes
        if issubclass(one, Exception) and one is not errors.WorkStealingError
    }

    assert drawn() == real
