"""Reads the end of what a task logged and printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import raw
from workstealing.queue.steps import Flow, RedisCommand, ask
from workstealing.tasks.json_values import NOT_JSON
from workstealing.tasks.output_capture import LogRecord

__all__ = ("LogTail", "read_log_tail")


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a log."""

    records: tuple[LogRecord, ...]
    """The earliest first."""
    total: int
    """Records that are kept."""


def read_log_tail(keys: QueueKeys, task_id: str, most: int) -> Flow[LogTail]:
    """Return the last records of a log; what cannot be read is left out."""
    key = keys.log(task_id)
    total = yield from ask(RedisCommand(("XLEN", key), int))
    if not total:
        return LogTail((), 0)
    last = RedisCommand(("XREVRANGE", key, "+", "-", "COUNT", most), _texts)
    texts = yield from ask(last)
    records = []
    for text in reversed(texts):
        try:
            records.append(LogRecord.read(text))
        except NOT_JSON:
            # Any program that can write to Redis may have put it there.
            continue
    return LogTail(tuple(records), total)


def _texts(reply: Any) -> list[bytes]:
    # The record is the last field of an entry.
    found = []
    for _, fields in reply:
        values = list(fields.values()) if isinstance(fields, dict) else list(fields)
        found.append(raw(values[-1]))
    return found
