"""What a running task leaves behind: its log, its progress, its checkpoint.

Only tasks that write any have these keys, and the keys expire. Only the worker that
holds the task can write: one that lost its lease cannot any more.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workstealing.queue.keys import QueueKeys, queue_scripts
from workstealing.queue.replies import raw, text
from workstealing.queue.steps import Call, RedisCommand
from workstealing.tasks.attempt import Delivery

__all__ = (
    "BEGINNING",
    "KEPT_MS",
    "LOG_BYTES",
    "LOG_RECORDS",
    "LogPage",
    "await_log",
    "drop_notes",
    "log",
    "note",
    "read_log",
    "read_note",
    "read_progress",
)

_script = queue_scripts(__package__)

LOG_RECORDS = 10_000
"""Records of one task that are kept; the oldest are forgotten."""
LOG_BYTES = 1 << 20
"""Bytes of one log that are kept, about."""
KEPT_MS = 86_400_000
"""How long a log, and notes, are kept after the last was written."""
BEGINNING = "0-0"
"""The place before the first record."""

# Not at once: if the report of the task is lost, it goes on from its notes.
_NOTES_AFTERWARDS_MS = 60_000


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some records of a log, one after the other."""

    records: tuple[bytes, ...]
    after: str
    """Where to read on."""
    is_over: bool
    """The task has ended, and these are its last records."""


def log(
    keys: QueueKeys, worker: str, task: Delivery, number: int, record: bytes
) -> Call[bool]:
    """Add a record to the log of a task; False if the worker lost the task."""
    script = _script("log")
    return Call(
        script,
        script.keys(keys, log=keys.log(task.id)),
        script.arguments(
            id=task.id,
            holder=f"{worker}#{task.token}",
            number=str(number),
            record=record,
            most_records=LOG_RECORDS,
            most_bytes=LOG_BYTES,
            kept_ms=KEPT_MS,
        ),
        bool,
    )


def read_log(
    keys: QueueKeys, task_id: str, after: str = BEGINNING, *, most: int = 500
) -> Call[LogPage]:
    """Read more of the log of a task."""

    def parse(reply: Any) -> LogPage:
        records = tuple(raw(record) for record in reply[2::2])
        last = text(reply[-2]) if records else after
        return LogPage(records, last, bool(reply[0]) and len(records) < most)

    script = _script("read_log")
    return Call(
        script,
        script.keys(keys, log=keys.log(task_id)),
        script.arguments(id=task_id, after=after, most=most),
        parse,
        is_raw=True,
    )


def await_log(
    keys: QueueKeys, task_id: str, after: str, seconds: float
) -> RedisCommand[bool]:
    """Wait for more in the log of a task, for some seconds at most."""
    block_ms = max(1, round(seconds * 1000))
    key = keys.log(task_id)
    return RedisCommand(
        ("XREAD", "COUNT", 1, "BLOCK", block_ms, "STREAMS", key, after), bool
    )


def note(
    keys: QueueKeys,
    worker: str,
    task: Delivery,
    what: Literal["progress", "checkpoint"],
    value: bytes,
) -> Call[bool]:
    """Keep a note of a task; False if the worker lost the task."""
    script = _script("note")
    return Call(
        script,
        script.keys(keys, notes=keys.notes(task.id)),
        script.arguments(
            id=task.id,
            holder=f"{worker}#{task.token}",
            of=_of(task.envelope),
            what=what,
            value=value,
            kept_ms=KEPT_MS,
        ),
        bool,
    )


def read_note(
    keys: QueueKeys,
    task_id: str,
    envelope: bytes,
    what: Literal["progress", "checkpoint"],
) -> RedisCommand[bytes | None]:
    """Read a note of a task, from any worker; None if there is none."""

    def parse(reply: Any) -> bytes | None:
        of, value = reply
        if value is None or text(of) != _of(envelope):
            return None
        return raw(value)

    return RedisCommand(("HMGET", keys.notes(task_id), "of", what), parse)


def read_progress(
    keys: QueueKeys, tasks: Sequence[tuple[str, bytes | None]]
) -> Call[tuple[bytes | None, ...]]:
    """Read how far some tasks say that they are; None for one that does not say.

    With its envelope, what an earlier task of the same id said is left out.
    """

    def parse(reply: Any) -> tuple[bytes | None, ...]:
        found = zip(tasks, reply[::2], reply[1::2], strict=True)
        return tuple(
            raw(value)
            if value and (envelope is None or text(of) == _of(envelope))
            else None
            for (_, envelope), of, value in found
        )

    script = _script("read_progress")
    own = tuple(keys.notes(task_id) for task_id, _ in tasks)
    return Call(
        script, script.keys(keys, notes=own), script.arguments(), parse, is_raw=True
    )


def drop_notes(keys: QueueKeys, task_id: str) -> RedisCommand[bool]:
    """Let the notes of a task that has ended expire soon."""
    return RedisCommand(("PEXPIRE", keys.notes(task_id), _NOTES_AFTERWARDS_MS), bool)


def _of(envelope: bytes) -> str:
    return f"{zlib.crc32(envelope):08x}"
