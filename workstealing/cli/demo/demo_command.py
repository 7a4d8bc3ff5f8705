"""`workstealing demo`: plays a story live, and proves it with figures at the end."""

from __future__ import annotations

import signal

import click
from rich.console import Console
from rich.live import Live

from workstealing.cli.demo.demo_page import closing_page, live_picture, promises_hold
from workstealing.cli.demo.story import Scene, Story
from workstealing.cli.exits import clear_errors
from workstealing.cli.tables import print_page
from workstealing.drivers.embedded import embedded

__all__ = ("demo_command",)

_PLOT = (
    "A small site serves pages from its cache. Every hit enlists; now and then one is"
    " recruited for a slice of side work: ending sessions, trimming a log, upkeep of"
    " the tasks. Meanwhile four workers share {tasks:,} uneven tasks and steal from"
    " each other. One worker is killed, another one joins late.\n"
)


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
    """Show side work, work stealing and a rescue, in less than a minute."""
    console = Console(highlight=False)
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


def _play(console: Console, story: Story) -> Scene:
    scene: Scene | None = None
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for scene in story.play():
            picture = live_picture(scene, story.tasks, console.width)
            live.update(picture, refresh=True)
    assert scene is not None
    return scene
