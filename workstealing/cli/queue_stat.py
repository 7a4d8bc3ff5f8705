"""`workstealing queue stat`: how a queue is, once or as it goes."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workstealing.cli.choosing import chosen, nothing_more, queue_options
from workstealing.cli.drawing import printable, table
from workstealing.cli.refusing import refusing
from workstealing.inspecting.inspector import Inspector
from workstealing.inspecting.values import Stat
from workstealing.inspecting.wording import moment, span

__all__ = ("stat_command",)

_EVERY_SECONDS = 1.0
_WORKERS = 20


@click.command("stat")
@queue_options()
@click.option("--follow", is_flag=True, help="Look again every second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print an object per look.")
@refusing()
def stat_command(follow: bool, as_json: bool, **where: Any) -> None:
    """Count what is where, who is at it, and what was done."""
    queue, words = chosen(**where)
    nothing_more(words)
    inspector, console = Inspector(queue), Console(highlight=False)
    if not follow:
        seen = inspector.stat()
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(seen), indent=2))
        else:
            console.print(_page(seen))
        return
    try:
        _follow(inspector, console, as_json)
    except KeyboardInterrupt:
        return


def _follow(inspector: Inspector, console: Console, as_json: bool) -> None:
    looks = _looks(inspector)
    if as_json:
        for seen in looks:
            click.echo(json.dumps(dataclasses.asdict(seen)))
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False, screen=True) as live:
            for seen in looks:
                live.update(_page(seen), refresh=True)
    else:
        for seen in looks:
            click.echo(_line(seen))


def _looks(inspector: Inspector) -> Iterator[Stat]:
    while True:
        yield inspector.stat()
        time.sleep(_EVERY_SECONDS)


def _line(seen: Stat) -> str:
    return (
        f"{moment(seen.now_ms)} waiting {seen.waiting:,} assigned {seen.assigned:,}"
        f" running {seen.running:,} delayed {seen.delayed:,} parked {seen.parked:,}"
        f" dead {seen.dead:,} done {seen.totals.done:,} workers {seen.living:,}"
    )


def _page(seen: Stat) -> Group:
    closed = ", closed: no more input" if seen.is_closed else ""
    parts: list[Table | Text] = [
        Text(f"{seen.queue}/{seen.run} at {moment(seen.now_ms)}{closed}"),
        _places(seen),
    ]
    if seen.workers:
        parts.append(_workers(seen))
    if seen.parkings:
        parts.append(_parkings(seen))
    parts += (_priorities(seen), _totals(seen), _upkeep(seen))
    if seen.bytes is not None:
        largest = sorted(seen.bytes.items(), key=lambda one: -one[1])[:4]
        sizes = ", ".join(f"{name} {size:,}" for name, size in largest)
        total = sum(seen.bytes.values())
        parts.append(Text(f"Memory: {total:,} bytes ({sizes}, …)"))
    return Group(*parts)


def _places(seen: Stat) -> Table:
    numbers = {
        "waiting": seen.waiting,
        "assigned": seen.assigned,
        "running": seen.running,
        "delayed": seen.delayed,
        "parked": seen.parked,
        "dead": seen.dead,
        "outcomes": seen.outcomes,
        "per worker": seen.backlog_per_worker,
    }
    made = table(*numbers, right=tuple(numbers))
    made.add_row(*(f"{number:,}" for number in numbers.values()))
    return made


def _priorities(seen: Stat) -> Text:
    urgent, normal, low = seen.inbox
    return Text(f"Inbox: {urgent:,} urgent, {normal:,} normal, {low:,} whenever")


def _totals(seen: Stat) -> Text:
    told = (
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in dataclasses.asdict(seen.totals).items()
    )
    return Text(f"So far: {', '.join(told)}")


def _workers(seen: Stat) -> Table:
    numbers = ("waiting", "running", "stolen", "renewed")
    made = table("worker", *numbers, "host", "process", right=numbers)
    for worker in seen.workers[:_WORKERS]:
        renewed = f"{span(worker.lease_age_ms)} ago"
        made.add_row(
            printable(worker.name),
            f"{worker.waiting:,}",
            f"{worker.running:,}",
            f"{worker.stolen:,}",
            renewed if worker.is_alive else f"dead {span(-worker.lease_left_ms)}",
            printable(worker.host),
            str(worker.pid or ""),
        )
    if len(seen.workers) > _WORKERS:
        made.caption = f"… {len(seen.workers) - _WORKERS:,} more"
    return made


def _parkings(seen: Stat) -> Table:
    made = table("parked for", "tasks", "because", right=("tasks",))
    for parked in seen.parkings:
        made.add_row(printable(parked.ability), f"{parked.tasks:,}", parked.reason)
    return made


def _upkeep(seen: Stat) -> Text:
    duties = ", ".join(
        f"{duty} {span(max(0, seen.now_ms - at_ms))} ago"
        for duty, at_ms in seen.upkeep.done_at_ms.items()
    )
    slices = ", ".join(f"{who} {n:,} ×" for who, n in seen.upkeep.slices.items())
    return Text(f"Upkeep: {duties}; by {slices}" if duties else "Upkeep: none yet")
