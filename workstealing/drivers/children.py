"""Lets child processes find the server that their parent uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workstealing.drivers.connect import VARIABLES
from workstealing.drivers.embedded import embedded

__all__ = ("address_for_children",)


@contextmanager
def address_for_children(redis: Any) -> Iterator[None]:
    """Start children inside: without an address they would embed servers of their own.

    For one caller at a time, as the environment is the whole process's.
    """
    if redis is not None or any(os.environ.get(variable) for variable in VARIABLES):
        yield
        return
    variable = VARIABLES[0]
    os.environ[variable] = embedded()
    try:
        yield
    finally:
        del os.environ[variable]
