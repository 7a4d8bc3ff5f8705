"""What `workstealing top` shows: views of one queue, each chosen by a key.

To add a view: a function that lays out a frame, and a line in `_VIEWS`; what it shows
is a field of `TopFrame`, read in `top_command.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workstealing.cli.colours import ALARM, GOOD, unless_zero
from workstealing.cli.live_frames import LiveFrame
from workstealing.cli.queue_tables import (
    alarm_lines,
    places_table,
    queue_heading,
    upkeep_line,
    workers_table,
)
from workstealing.cli.tables import Curve, PagePart, TextTable
from workstealing.inspecting import QueueHistory, QueueStat, Rates, TaskRow, TaskStat
from workstealing.inspecting.formatting import (
    duration,
    duration_ms,
    one_decimal,
    percent,
    plural,
)
from workstealing.inspecting.stat_rows import (
    oldest_age,
    remaining_time,
    totals_text,
    upkeep_ages,
)
from workstealing.tasks.context import Progress

__all__ = ("TITLES", "TopFrame", "progress_bar", "top_parts")

_NONE = "-"
_BAR = 10
_MOST_WORKERS = 1000


@dataclass(frozen=True, slots=True)
class TopFrame(LiveFrame):
    """What is known of a queue at one moment."""

    name: str
    """Queue and run."""
    stat: QueueStat | None = None
    """The last stat that was read; None until there is one."""
    rates: Rates | None = None
    history: QueueHistory | None = None
    running: tuple[TaskRow, ...] = ()
    """Some of the tasks that run."""

    @property
    def is_known(self) -> bool:
        """Whether there is such a queue, as far as it was read."""
        return self.stat is None or self.stat.is_known


def top_parts(frame: TopFrame, keys: Sequence[str]) -> list[PagePart]:
    """Lay out a frame as the views of these keys show it; in a pipe, as all do."""
    if frame.stat is None:
        return [f"{frame.name}: {frame.problem}"]
    parts = _heading(frame, frame.stat)
    for key in keys:
        parts += _VIEWS[key][1](frame, frame.stat)
    return parts


def _heading(frame: TopFrame, seen: QueueStat) -> list[PagePart]:
    return [*queue_heading(seen), *frame.unreachable(), *alarm_lines(seen)]


def _overview(frame: TopFrame, seen: QueueStat) -> list[PagePart]:
    return [
        places_table(seen, oldest=oldest_age(seen) or _NONE),
        _rates_table(frame.rates),
        *_curves(frame.history),
        "",
        f"{plural(seen.living, 'worker')} alive; so far {totals_text(seen)}",
    ]


def _rates_table(rates: Rates | None) -> TextTable:
    titles = tuple(f"{name}/s" for name in Rates.__slots__)
    paint = {"done/s": unless_zero(GOOD), "dead/s": unless_zero(ALARM)}
    table = TextTable(titles, right=titles, paint=paint)
    table.add(
        *(
            _NONE if rates is None else one_decimal(getattr(rates, name))
            for name in Rates.__slots__
        )
    )
    return table


def _curves(history: QueueHistory | None) -> list[PagePart]:
    if history is None or not any(one.done + one.failed for one in history.stretches):
        return []
    done = [one.done for one in history.stretches]
    failed = [one.failed for one in history.stretches]
    # Notes of the same length, so that a minute is in the same column of both.
    longest = max(len(_extent(done)), len(_extent(failed)))
    return [
        Curve("done/min  ", done, _extent(done).ljust(longest), GOOD),
        Curve("failed/min", failed, _extent(failed).ljust(longest), ALARM),
    ]


def _extent(values: list[int]) -> str:
    return f"now {values[-1]:,}, most {max(values):,}"


def _running(frame: TopFrame, seen: QueueStat) -> list[PagePart]:
    if not frame.running and seen.unreachable and seen.running:
        tasks = plural(seen.running, "running task")
        return [f"{tasks}, not listed while a node of the Cluster is away"]
    if not frame.running:
        return ["no task is running"]
    table = TextTable(
        ("running", "task", "worker", "for", "progress", "left", "note"),
        right=("for", "left"),
        prose=("note",),
        paint={"progress": lambda _: "cyan"},
    )
    for row in frame.running:
        passed_ms = max(0, seen.now_ms - row.at_ms) if row.at_ms else 0
        told = row.progress
        table.add(
            row.id,
            row.task,
            row.worker,
            duration_ms(passed_ms) if row.at_ms else "",
            progress_bar(told) if told else "",
            remaining_time(told, passed_ms) if told else "",
            told.note if told else "",
        )
    if seen.running > len(frame.running):
        more = seen.running - len(frame.running)
        table.footer.append(f"… {more:,} more that workers have taken")
    return [table]


def progress_bar(told: Progress) -> str:
    """Draw how far a task is, or say it in numbers if it names no total."""
    if not told.total or told.total < 0:
        return f"{told.done:g}"
    share = min(1.0, max(0.0, told.done / told.total))
    full = int(share * _BAR)
    return f"{'█' * full}{'░' * (_BAR - full)} {percent(share)}"


def _names(frame: TopFrame, _: QueueStat) -> list[PagePart]:
    history = frame.history
    if history is None or not history.tasks:
        return ["no task has ended in the last hour"]
    numbers = ("done", "failed", "per min", "p50", "p95", "wait p50", "wait p95")
    paint = {"failed": unless_zero(ALARM)}
    table = TextTable(("task", *numbers), right=numbers, paint=paint)
    busy = [n for n, one in enumerate(history.stretches) if one.done + one.failed]
    minutes = len(history.stretches) - busy[0] if busy else 1
    for task in history.tasks:
        table.add(
            task.task,
            f"{task.done:,}",
            f"{task.failed:,}",
            one_decimal(task.done / minutes),
            duration(task.quantile_ms(0.5) / 1000),
            duration(task.quantile_ms(0.95) / 1000),
            *_waits(task),
        )
    table.footer.append(f"attempts in the last {minutes} min, of 60 at most")
    return [table]


def _waits(task: TaskStat) -> tuple[str, str]:
    if not any(task.waits):
        return _NONE, _NONE
    p50, p95 = map(task.wait_quantile_ms, (0.5, 0.95))
    return duration(p50 / 1000), duration(p95 / 1000)


def _workers(_: TopFrame, seen: QueueStat) -> list[PagePart]:
    return [workers_table(seen, _MOST_WORKERS)]


def _upkeep(_: TopFrame, seen: QueueStat) -> list[PagePart]:
    if not seen.upkeep.done_at_ms:
        return [upkeep_line(seen)]
    parts: list[PagePart] = []
    duties = TextTable(("upkeep", "last done"), right=("last done",))
    for duty, age in upkeep_ages(seen).items():
        duties.add(duty, age)
    parts.append(duties)
    if seen.upkeep.slices:
        slices = TextTable(("by", "slices"), right=("slices",))
        for who, number in seen.upkeep.slices.items():
            slices.add(who, f"{number:,}")
        parts.append(slices)
    return parts


_VIEWS: dict[str, tuple[str, Callable[[TopFrame, QueueStat], list[PagePart]]]] = {
    "1": ("queue", _overview),
    "2": ("running", _running),
    "3": ("names", _names),
    "4": ("workers", _workers),
    "5": ("upkeep", _upkeep),
}
TITLES = {key: title for key, (title, _) in _VIEWS.items()}
