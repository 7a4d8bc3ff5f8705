"""`workstealing demo`: plays a story live, and sums it up in figures at the end.

The closing figures can be checked against each other: a job that was drawn was refused
or did a slice, and a slice was useful, found nothing or failed.
"""

from __future__ import annotations

import signal

import click
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.text import Text

from workstealing.cli.consoles import open_console
from workstealing.cli.demo.story import KILLED, LATE, LOG_LINES, SHARE, Scene, Story
from workstealing.cli.options import clear_errors
from workstealing.cli.tables import PagePart, TextTable, print_page, rendered
from workstealing.drivers.embedded import embedded
from workstealing.inspecting.formatting import duration, percent
from workstealing.recruiting.stats import JobStats
from workstealing.telemetry.events import Outcome

__all__ = ("closing_page", "demo_command", "promises_hold")

_PLOT = (
    "A small site serves pages from its cache. Every hit enlists; now and then one is"
    " recruited for a slice of side work: ending sessions, trimming a log, upkeep of"
    " the tasks. Meanwhile four workers share {tasks:,} uneven tasks and steal from"
    " each other. One worker is killed, and another joins late.\n"
)
# What a recruiter may spend once on top of its share.
_SAVED_SECONDS = 0.05
_REFUSED = (Outcome.BUSY, Outcome.OPEN, Outcome.BUDGET, Outcome.STORE)
_FOUND_NOTHING = (Outcome.EMPTY, Outcome.CONFLICT)
_FAILED = (Outcome.ERROR, Outcome.INTERRUPTED)


@click.command("demo")
@click.option(
    "--redis", "url", metavar="URL", help="Server.  [default: an embedded one]"
)
@click.option(
    "--tasks",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Number of tasks.",
)
def demo_command(url: str | None, tasks: int) -> None:
    """Show side work, stealing and a rescue in under a minute."""
    console = open_console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with clear_errors():
        story = Story(url or embedded(), tasks)
        console.print(_PLOT.format(tasks=tasks))
        scene = _play(console, story)
    print_page(closing_page(scene, tasks), console)
    if not promises_hold(scene, tasks):
        raise click.ClickException(
            "not every task was done exactly once: please report this"
        )


def closing_page(scene: Scene, tasks: int) -> list[PagePart]:
    """Sum up what happened, once it is over."""
    stats, done = scene.counts.stats, scene.counts.stats.get("done", 0)
    figures = {
        "tasks submitted": stats.get("submitted", 0),
        "tasks done": done,
        "tasks lost": tasks - done,
        "tasks done twice": done - scene.counts.outcomes,
        f"taken back from {KILLED}, which was killed": stats.get("reassigned", 0),
        "of these, started a second time": max(0, scene.started - tasks),
        "stolen from busy workers": stats.get("stolen", 0),
        "cache hits, each of which enlisted": scene.side_work.calls,
        "sessions ended by side work": scene.ended_sessions,
        f"log lines, of {LOG_LINES:,} to be kept": scene.garbage["log"],
    }
    table = TextTable(("what happened", "number"), right=("number",))
    for what, number in figures.items():
        table.add(what, f"{number:,}")
    return [table, "", _side_work(scene), "", _time_spent(scene)]


def promises_hold(scene: Scene, tasks: int) -> bool:
    """Return whether each task was done exactly once."""
    done = scene.counts.stats.get("done", 0)
    return done == tasks == scene.counts.outcomes


def _play(console: Console, story: Story) -> Scene:
    scene: Scene | None = None
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for scene in story.play():
            picture = _live_picture(scene, story.tasks, console.width)
            live.update(picture, refresh=True)
    assert scene is not None
    return scene


def _live_picture(scene: Scene, tasks: int, width: int) -> Group:
    """Show the progress, the workers and the site."""
    done = scene.counts.stats.get("done", 0)
    bar = ProgressBar(total=tasks, completed=done, width=50)
    line = Text(f" {done:,} of {tasks:,} tasks, {scene.seconds:.0f} s")
    workers, site = rendered([_workers(scene)], width), rendered([_site(scene)], width)
    return Group(
        Columns([bar, line]),
        Columns([Panel(workers, title="tasks"), Panel(site, title="site")]),
    )


def _workers(scene: Scene) -> TextTable:
    table = TextTable(("worker", "deque", "stolen", "state"), right=("deque", "stolen"))
    for name, condition in scene.workers.items():
        style = "red" if name == KILLED and "killed" in condition else ""
        table.add(
            name,
            f"{scene.counts.loads.get(name, 0):,}",
            f"{scene.stolen.get(name, 0):,}",
            condition,
            style="green" if name == LATE else style,
        )
    waiting, moved = sum(scene.counts.inbox), scene.counts.stats.get("reassigned", 0)
    table.footer.append(f"{waiting:,} in the inbox, {moved:,} taken back")
    return table


def _site(scene: Scene) -> TextTable:
    numbers = ("slices", "useful", "garbage")
    table = TextTable(("job", *numbers), right=numbers)
    for name, job in scene.side_work.jobs.items():
        garbage = scene.garbage.get(name)
        table.add(
            name,
            f"{job.drawn - _sum(job, *_REFUSED):,}",
            f"{job.recruited:,}",
            "" if garbage is None else f"{garbage:,}",
        )
    spent = percent(_seconds(scene) / max(0.001, scene.seconds))
    hits = scene.side_work.calls
    table.footer.append(f"{hits:,} cache hits, {spent} of the time for side work")
    return table


def _side_work(scene: Scene) -> TextTable:
    numbers = ("drawn", "refused", "slices", "useful", "found nothing", "failed")
    table = TextTable(("side work", *numbers, "time"), right=(*numbers, "time"))
    for name, job in scene.side_work.jobs.items():
        refused = _sum(job, *_REFUSED)
        table.add(
            name,
            f"{job.drawn:,}",
            f"{refused:,}",
            f"{job.drawn - refused:,}",
            f"{job.recruited:,}",
            f"{_sum(job, *_FOUND_NOTHING):,}",
            f"{_sum(job, *_FAILED):,}",
            duration(job.seconds),
        )
    return table


def _time_spent(scene: Scene) -> str:
    spent, budget = _seconds(scene), SHARE * scene.seconds + _SAVED_SECONDS
    share = percent(spent / max(0.001, scene.seconds))
    return (
        f"Side work took {duration(spent)} of the site's {duration(scene.seconds)}"
        f" ({share}). Its budget was {duration(budget)}: {percent(SHARE)}, and"
        f" {duration(_SAVED_SECONDS)} once.\nNo scheduler, no beat, no cron job."
    )


def _seconds(scene: Scene) -> float:
    return sum(job.seconds for job in scene.side_work.jobs.values())


def _sum(job: JobStats, *outcomes: Outcome) -> int:
    return sum(job.outcomes[outcome] for outcome in outcomes)
