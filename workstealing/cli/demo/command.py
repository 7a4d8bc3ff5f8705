"""`workstealing demo`: shows the story while it happens, and proves it at the end."""

from __future__ import annotations

import signal

import click
from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from workstealing.cli.demo.story import KILLED, LATE, Scene, Story
from workstealing.cli.refusing import refusing
from workstealing.drivers.embedded import embedded
from workstealing.telemetry.events import Outcome

__all__ = ("demo_command",)

_PLOT = (
    "A little site serves pages from its cache. Each hit enlists; now and then one is"
    " recruited for a slice of side work: ending sessions, trimming a log, upkeep of"
    " the tasks. Meanwhile four workers share {tasks:,} uneven tasks and steal from"
    " each other. One is killed, another joins late. There is no scheduler, no beat,"
    " no cron job."
)


@click.command("demo")
@click.option("--redis", "url", help="Where; an embedded server unless given.")
@click.option(
    "--tasks", type=click.IntRange(min=100), default=20_000, show_default=True
)
def demo_command(url: str | None, tasks: int) -> None:
    """Show the whole story in about a minute."""
    console = Console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with refusing():
        story = Story(url or embedded(), tasks)
        console.print(_PLOT.format(tasks=tasks), highlight=False)
        scene = _play(console, story)
    console.print(_proof(scene, tasks))
    if not _holds(scene, tasks):
        raise click.ClickException("the promises did not hold: please report this")


def _play(console: Console, story: Story) -> Scene:
    scene: Scene | None = None
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for scene in story.play():
            live.update(_picture(scene, story.tasks), refresh=True)
    assert scene is not None
    return scene


def _picture(scene: Scene, tasks: int) -> Group:
    done = scene.counts.stats.get("done", 0)
    bar = ProgressBar(total=tasks, completed=done, width=50)
    line = Text(f" {done:,} of {tasks:,} tasks, {scene.seconds:.0f} s")
    return Group(
        Columns([bar, line]),
        Columns(
            [Panel(_workers(scene), title="tasks"), Panel(_site(scene), title="site")]
        ),
    )


def _workers(scene: Scene) -> Table:
    table = Table("worker", "deque", "stolen", "", box=SIMPLE_HEAD, padding=(0, 1))
    for name, condition in scene.workers.items():
        style = "red" if name == KILLED and "killed" in condition else ""
        style = "green" if name == LATE else style
        table.add_row(
            name,
            str(scene.counts.loads.get(name, 0)),
            str(scene.stolen.get(name, 0)),
            condition,
            style=style,
        )
    waiting, moved = sum(scene.counts.inbox), scene.counts.stats.get("reassigned", 0)
    table.caption = f"{waiting:,} in the inbox, {moved} reassigned"
    return table


def _site(scene: Scene) -> Table:
    table = Table("job", "drawn", "worked", "to look after", box=SIMPLE_HEAD)
    for name, job in scene.side_work.jobs.items():
        backlog = scene.backlog.get(name)
        table.add_row(
            name,
            str(job.drawn),
            str(job.recruited),
            "" if backlog is None else f"{backlog:,}",
        )
    table.caption = f"{scene.hits:,} cache hits, {_share(scene):.1%} of time spent"
    return table


def _share(scene: Scene) -> float:
    spent = sum(job.seconds for job in scene.side_work.jobs.values())
    return spent / scene.seconds if scene.seconds else 0.0


def _proof(scene: Scene, tasks: int) -> Group:
    stats, counts = scene.counts.stats, scene.counts
    done = stats.get("done", 0)
    proof = Table("", "", box=SIMPLE_HEAD, show_header=False, title="What happened")
    rows = {
        "tasks submitted": stats.get("submitted", 0),
        "tasks done": done,
        "lost": tasks - done,
        "completed twice": done - counts.outcomes,
        "begun again after the kill": max(0, scene.begun - tasks),
        "reassigned from the dead": stats.get("reassigned", 0),
        "stolen": stats.get("stolen", 0),
        "upkeep by workers, slices": stats.get("upkeep:worker", 0),
        "upkeep by the web site, slices": stats.get("upkeep:web", 0),
        "sessions ended by cache hits": scene.ended_sessions,
        "errors in side work": sum(
            job.outcomes[Outcome.ERROR] for job in scene.side_work.jobs.values()
        ),
    }
    for what, number in rows.items():
        proof.add_row(what, f"{number:,}")
    proof.add_row("seconds", f"{scene.seconds:.1f}")
    return Group(_workers(scene), _site(scene), proof)


def _holds(scene: Scene, tasks: int) -> bool:
    done = scene.counts.stats.get("done", 0)
    return done == tasks == scene.counts.outcomes
