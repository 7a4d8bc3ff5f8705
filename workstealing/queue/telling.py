"""What a running task tells of itself: its log, its progress, where to go on.

All of it is for tasks that do so, in keys of their own that expire. Only who holds the
task can write: a worker that lost its lease tells nothing any more.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Literal

from workstealing.queue.call import Call, Command
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import raw, text
from workstealing.queue.scripts import load_script
from workstealing.tasks.attempt import Taken

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
    "noted",
    "read_log",
)

LOG_RECORDS = 10_000
"""Records of one task that are kept; the oldest are forgotten."""
LOG_BYTES = 1 << 20
"""Bytes of one log that are kept, about."""
KEPT_MS = 86_400_000
"""How long a log, and notes, are kept after the last was written."""
BEGINNING = "0-0"
"""The place before the first record."""

# Notes of an ended task. Not at once: if its report does not arrive, it goes on there.
_NOTES_AFTERWARDS_MS = 60_000


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some records of a log, one after the other."""

    records: tuple[bytes, ...]
    after: str
    """Where to read on."""
    is_over: bool
    """The task has ended: what is not told here was all."""


def log(
    keys: QueueKeys, worker: str, task: Taken, number: int, record: bytes
) -> Call[bool]:
    """Add a record to the log of a task; False if it is another's by now."""
    return Call(
        load_script(__package__, "log"),
        (keys.log(task.id), keys.lock),
        (
            task.id,
            f"{worker}#{task.token}",
            str(number),
            record,
            LOG_RECORDS,
            LOG_BYTES,
            KEPT_MS,
        ),
        bool,
    )


def read_log(
    keys: QueueKeys, task_id: str, after: str = BEGINNING, *, most: int = 500
) -> Call[LogPage]:
    """Read on in the log of a task."""

    def parse(reply: Any) -> LogPage:
        records = tuple(raw(record) for record in reply[2::2])
        last = text(reply[-2]) if records else after
        return LogPage(records, last, bool(reply[0]) and len(records) < most)

    return Call(
        load_script(__package__, "read_log"),
        (keys.log(task_id), keys.task, keys.dead),
        (task_id, after, most),
        parse,
        is_raw=True,
    )


def await_log(
    keys: QueueKeys, task_id: str, after: str, seconds: float
) -> Command[bool]:
    """Wait until there is more in the log of a task, or for so long."""
    block_ms = max(1, round(seconds * 1000))
    key = keys.log(task_id)
    return Command(
        ("XREAD", "COUNT", 1, "BLOCK", block_ms, "STREAMS", key, after), bool
    )


def note(
    keys: QueueKeys,
    worker: str,
    task: Taken,
    what: Literal["progress", "checkpoint"],
    value: bytes,
) -> Call[bool]:
    """Keep what a task notes; False if it is another's by now."""
    lock = f"{worker}#{task.token}"
    return Call(
        load_script(__package__, "note"),
        (keys.notes(task.id), keys.lock),
        (task.id, lock, _of(task.envelope), what, value, KEPT_MS),
        bool,
    )


def noted(
    keys: QueueKeys,
    task_id: str,
    envelope: bytes,
    what: Literal["progress", "checkpoint"],
) -> Command[bytes | None]:
    """Read what a task noted, on whatever worker; None if it did not."""

    def parse(reply: Any) -> bytes | None:
        of, value = reply
        if value is None or text(of) != _of(envelope):
            return None
        return raw(value)

    return Command(("HMGET", keys.notes(task_id), "of", what), parse)


def drop_notes(keys: QueueKeys, task_id: str) -> Command[bool]:
    """Let the notes of a task that has ended expire soon."""
    return Command(("PEXPIRE", keys.notes(task_id), _NOTES_AFTERWARDS_MS), bool)


def _of(envelope: bytes) -> str:
    return f"{zlib.crc32(envelope):08x}"
