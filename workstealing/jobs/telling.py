"""Calls a user's hook for each of several facts, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workstealing.queue.call import Consult, Flow

__all__ = ("tell_each",)

Fact = tuple[Any, ...]


def tell_each(
    hook: Callable[..., Any], facts: Iterable[Fact]
) -> Flow[tuple[list[Fact], Exception | None]]:
    """Return what was told and the first error; a failure does not stop the rest."""
    told: list[Fact] = []
    first: Exception | None = None
    for fact in facts:
        try:
            yield Consult(hook, fact)
        except Exception as error:  # noqa: BLE001 - raised later
            first = first or error
        else:
            told.append(fact)
    return told, first
