"""Finds what a module, or an installed package, offers to a registry."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from workstealing.errors import ConfigurationError

__all__ = ("GROUP", "found_in_entry_points", "found_in_module")

GROUP = "workstealing.tasks"
"""The group of entry points; each names a module, or a registry in one."""


def found_in_module(name: str) -> list[Any]:
    """Import a module and return all that it has."""
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        # A module that is there, and imports one that is not, is another problem.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(f"there is no module {name} to load") from error
    return list(vars(module).values())


def found_in_entry_points() -> Iterator[tuple[str, list[Any]]]:
    """Import what installed packages offer; return each with its name."""
    for entry_point in entry_points(group=GROUP):
        found = entry_point.load()
        is_module = isinstance(found, ModuleType)
        yield entry_point.name, list(vars(found).values()) if is_module else [found]
