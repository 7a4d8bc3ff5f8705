"""Finds an object of an application by `MODULE:NAME`, in the current folder first."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Any

from workstealing.errors import ConfigurationError

__all__ = ("imported",)


def imported(where: str, form: str) -> Any:
    """Return what *where* names; *form* says how it is written, in errors.

    Raises:
        ConfigurationError: there is no such thing, or the module cannot be imported.
    """
    module_name, _, attribute = where.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"{where!r} is not {form}")
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigurationError(
            f"cannot import {module_name}: {_told(error)}"
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"{module_name} has no {attribute}")
        found = getattr(found, name)
    return found


def _told(error: Exception) -> str:
    """Say in one line what is wrong with the module, and where."""
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    # The application's own line, not the one of ours that refused what it wrote.
    last = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in ("importlib", "workstealing"):
            last = f"{frame.f_code.co_filename}, line {line}"
    if last is None or isinstance(error, (ImportError, SyntaxError)):
        return text
    return f"{text} ({last})"
