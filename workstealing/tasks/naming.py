"""The names of tasks and queues, and the ids of tasks.

They become parts of Redis keys and of lines on a terminal. So they have no braces
(those choose the Cluster slot), no spaces and no control characters.
"""

from __future__ import annotations

import os
from typing import Any

from workstealing.errors import InvalidName

__all__ = (
    "LONGEST_NAME",
    "checked_id",
    "checked_queue_name",
    "checked_task_name",
    "new_ids",
)

LONGEST_NAME = 200


def checked_task_name(name: Any) -> str:
    """Return the name of a task; `@` stands before its version, so not in it."""
    return _checked(name, "the name of a task", _TASK)


def checked_queue_name(name: Any, what: str = "the name of a queue") -> str:
    """Return the name of a queue or of a run; `/` stands between the two."""
    return _checked(name, what, _QUEUE)


def checked_id(name: Any) -> str:
    """Return the id of a task, as its submitter chose it."""
    return _checked(name, "the id of a task", _ID)


def new_ids(count: int) -> list[str]:
    """Draw ids of 16 hexadecimal digits, all from one call to the system."""
    digits = os.urandom(8 * count).hex()
    return [digits[start : start + 16] for start in range(0, 16 * count, 16)]


_ID = frozenset(" {}")
_TASK = frozenset(" {}@")
_QUEUE = frozenset(" {}/")


def _checked(name: Any, what: str, banned: frozenset[str]) -> str:
    if (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and name.isprintable()
        and banned.isdisjoint(name)
    ):
        return name
    but = " ".join(sorted(banned - {" "}))
    raise InvalidName(
        f"{what} must be 1 to {LONGEST_NAME} printable characters without spaces"
        f" and without {but}; this is {_shown(name)}"
    )


def _shown(name: Any) -> str:
    text = ascii(name)
    return text if len(text) <= 80 else f"{text[:80]}… ({len(text)} characters)"
