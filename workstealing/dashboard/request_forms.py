"""Reads what forms and addresses of the dashboard say; refuses what they may not."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from workstealing.errors import ConfigurationError
from workstealing.inspecting import TaskFilter

__all__ = (
    "FILTERS",
    "check_fields",
    "chosen_action",
    "filter_of",
    "read_fields",
    "read_form",
)

A = TypeVar("A", bound=str)

_LARGEST_FORM = 65_536


async def read_form(request: Request) -> dict[str, str]:
    """Read a form whose fields have one value each."""
    return dict(await read_fields(request))


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Read a form; refuse a body that is larger than any form of the dashboard."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise HTTPException(413)
    return parse_qsl(body.decode(errors="replace"), keep_blank_values=True)


def check_fields(form: dict[str, str], known: set[str]) -> None:
    """Refuse a form of another path: without its field, it would do something else."""
    unknown = sorted(form.keys() - known - {"action"})
    if unknown:
        raise ConfigurationError(
            f"unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )


def chosen_action(form: dict[str, str], actions: tuple[A, ...]) -> A:
    """Return the action of a form; refuse one that is none of these."""
    for action in actions:
        if action == form.get("action"):
            return action
    raise ConfigurationError(
        f"action must be one of {', '.join(actions)}, got {form.get('action', '')!r}"
    )


FILTERS = ("state", "task", "worker", "error", "prefix", "older", "group")


def filter_of(given: dict[str, str]) -> TaskFilter:
    """Return the filter that an address or a form describes."""
    older = given.get("older", "")
    if older and not (older.isascii() and older.isdigit() and len(older) < 10):
        raise ConfigurationError(f"older must be whole seconds, got {older!r}")
    return TaskFilter(
        state=given.get("state") or "waiting",
        task=given.get("task", "").strip(),
        worker=given.get("worker", "").strip(),
        error=given.get("error", "").strip(),
        id=given.get("prefix", "").strip(),
        older_ms=int(older or 0) * 1000,
        group=given.get("group", ""),
    )
