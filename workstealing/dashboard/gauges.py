"""The numbers of queues as text that Prometheus and autoscalers read.

| metric | labels |
| --- | --- |
| `workstealing_queue_backlog` | `queue`, `run` |
| `workstealing_queue_backlog_per_worker` | `queue`, `run` |
| `workstealing_queue_tasks` | `queue`, `run`, `place` |
| `workstealing_queue_workers` | `queue`, `run` |
| `workstealing_queue_oldest_seconds` | `queue`, `run` |
| `workstealing_queue_events_total` | `queue`, `run`, `what` |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workstealing.inspecting import QueueStat
from workstealing.inspecting.stat_rows import PLACE_TITLES

__all__ = ("escaped_label", "gauges")

_PLACES = (*PLACE_TITLES, "outcomes")


def gauges(seen: Sequence[QueueStat]) -> str:
    """Return the metrics of some queues, in the text format of Prometheus."""
    lines = [
        *_family("backlog", "gauge", "Tasks that can run now."),
        *(_line("backlog", one, one.backlog) for one in seen),
        *_family("backlog_per_worker", "gauge", "Tasks that are due, per worker."),
        *(_line("backlog_per_worker", one, one.backlog_per_worker) for one in seen),
        *_family("tasks", "gauge", "Tasks, by where they are."),
        *(
            _line("tasks", one, getattr(one, place), place=place)
            for one in seen
            for place in _PLACES
        ),
        *_family("workers", "gauge", "Live workers."),
        *(_line("workers", one, one.living) for one in seen),
        *_family("oldest_seconds", "gauge", "How long the oldest task has waited."),
        *(_line("oldest_seconds", one, _oldest(one)) for one in seen),
        *_family("events_total", "counter", "Events since the queue was created."),
        *(
            _line("events_total", one, getattr(one.totals, what), what=what)
            for one in seen
            for what in type(one.totals).__slots__
        ),
    ]
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, description: str) -> Iterator[str]:
    yield f"# HELP workstealing_queue_{name} {description}"
    yield f"# TYPE workstealing_queue_{name} {kind}"


def _line(name: str, seen: QueueStat, value: float, **labels: str) -> str:
    labelled = {"queue": seen.queue, "run": seen.run, **labels}
    written = ",".join(
        f'{label}="{escaped_label(word)}"' for label, word in labelled.items()
    )
    return f"workstealing_queue_{name}{{{written}}} {value}"


def escaped_label(word: str) -> str:
    """Return the value of a label as the text format writes it."""
    return word.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _oldest(seen: QueueStat) -> float:
    if seen.oldest_at_ms is None:
        return 0.0
    return max(0, seen.now_ms - seen.oldest_at_ms) / 1000
