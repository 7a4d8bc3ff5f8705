"""What commands print of a queue: its counts, workers, upkeep, tasks and tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from workstealing._printing import on_one_line
from workstealing.cli.colours import (
    ALARM,
    GOOD,
    HEADING,
    NOTICE,
    state_style,
    unless_zero,
)
from workstealing.cli.tables import PagePart, TextTable
from workstealing.inspecting import QueueStat, TaskRow, TreeNode
from workstealing.inspecting.alarms import alarms_of
from workstealing.inspecting.formatting import plural, relative_time, timestamp
from workstealing.inspecting.stat_rows import (
    WORKER_TITLES,
    live_first,
    pause_lines,
    place_counts,
    upkeep_ages,
    worker_row,
)

__all__ = (
    "alarm_lines",
    "places_table",
    "queue_heading",
    "task_table",
    "tree_lines",
    "upkeep_line",
    "workers_table",
)

_WIDEST_NAME = 46


def queue_heading(stat: QueueStat) -> list[PagePart]:
    """Return which queue it is, where and when, and a line for each pause."""
    unknown = "" if stat.is_known else ": there is no such queue, or it was never used"
    closed = "; its input has ended" if stat.input_ended else ""
    seen = f" on {stat.server} at {timestamp(stat.now_ms)}{unknown}{closed}"
    title = Text.assemble((f"{stat.queue}/{stat.run}", HEADING), on_one_line(seen))
    pauses = (on_one_line(f"PAUSED: {line}") for line in pause_lines(stat))
    return [title, *(Text(line, style=NOTICE) for line in pauses)]


def alarm_lines(stat: QueueStat) -> list[PagePart]:
    """Return what somebody should look at, a line each."""
    return [
        Text(on_one_line(f"{alarm.headline}. {alarm.more}"), style=ALARM)
        for alarm in alarms_of(stat)
    ]


def places_table(stat: QueueStat, **more: str) -> TextTable:
    """Return how many tasks are where, and more columns."""
    cells = {**place_counts(stat), "outcomes": f"{stat.outcomes:,}", **more}
    titles = tuple(title.replace("_", " ") for title in cells)
    paint = {
        "running": unless_zero(state_style("running")),
        "dead": unless_zero(ALARM),
        **{name: unless_zero(NOTICE) for name in ("parked", "paused", "held back")},
    }
    table = TextTable(titles, right=titles, paint=paint)
    table.add(*cells.values())
    return table


def workers_table(stat: QueueStat, most: int) -> TextTable:
    """Return a table of at most this many workers, live ones first."""
    paint = {"state": state_style, "stolen": unless_zero(GOOD)}
    table = TextTable(WORKER_TITLES, right=WORKER_TITLES[2:6], paint=paint)
    for worker in live_first(stat.workers)[:most]:
        table.add(*worker_row(worker).values())
    if not stat.living:
        table.footer.append("no worker is alive")
    if len(stat.workers) > most:
        more = len(stat.workers) - most
        table.footer.append(f"… {plural(more, 'more worker')}")
    return table


def upkeep_line(stat: QueueStat) -> str:
    """Return how long ago each duty of upkeep was last done."""
    ages = (f"{duty} {age}" for duty, age in upkeep_ages(stat).items())
    return on_one_line(f"Upkeep: {', '.join(ages) or 'none yet'}")


def task_table(tasks: Sequence[TaskRow], now_ms: int) -> TextTable:
    """Return a table of tasks."""
    table = TextTable(
        ("id", "task", "state", "worker", "when", "note"),
        right=("when",),
        prose=("note",),
        paint={"state": state_style},
    )
    for task in tasks:
        notes = [task.note] if task.note else []
        notes += [f"at {task.progress}"] if task.progress else []
        notes += [f"{task.attempts} failed"] if task.attempts else []
        notes += [f"{task.deaths} died"] if task.deaths else []
        notes += [f"stolen {task.steals} ×"] if task.steals else []
        table.add(
            task.id,
            task.task,
            task.state.value,
            task.worker,
            relative_time(task.at_ms, now_ms),
            ", ".join(notes),
        )
    return table


def tree_lines(root: TreeNode) -> list[str]:
    """Draw folders and files as the command `tree` does, with notes at the side."""
    drawn = list(_branches(root, "", ""))
    noted = [len(line) for line, note in drawn if note]
    column = min(_WIDEST_NAME, max(noted, default=0) + 2)
    return [
        f"{line.ljust(column)} <---- {note}" if note else line for line, note in drawn
    ]


def _branches(node: TreeNode, before: str, below: str) -> Iterator[tuple[str, str]]:
    yield f"{before}{on_one_line(node.name)}", on_one_line(node.note)
    for number, child in enumerate(node.children, 1):
        if number == len(node.children):
            yield from _branches(child, f"{below}└── ", f"{below}    ")
        else:
            yield from _branches(child, f"{below}├── ", f"{below}│   ")
