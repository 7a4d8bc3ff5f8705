"""`workstealing queue stat`: shows the counts of a queue, once or every second."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from workstealing.cli.colours import NOTICE
from workstealing.cli.consoles import can_be_redrawn, open_console, say
from workstealing.cli.options import (
    chosen_queue,
    clear_errors,
    no_more_words,
    queue_options,
)
from workstealing.cli.queue_tables import (
    alarm_lines,
    places_table,
    queue_heading,
    upkeep_line,
    workers_table,
)
from workstealing.cli.tables import (
    PagePart,
    TextTable,
    plain_lines,
    print_page,
    rendered,
)
from workstealing.cli.unknown_queue import queues_instead
from workstealing.inspecting import Inspector, QueueStat
from workstealing.inspecting.formatting import plural, timestamp
from workstealing.inspecting.stat_rows import oldest_age, totals_text

__all__ = ("stat_command",)

_INTERVAL_SECONDS = 1.0
_MOST_WORKERS = 20


@click.command("stat")
@queue_options()
@click.option("--follow", is_flag=True, help="Repeat every second until Ctrl-C.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print an object; with --follow, one per line.",
)
@clear_errors()
def stat_command(follow: bool, as_json: bool, **where: Any) -> None:
    """Show counts, workers, totals, upkeep and memory of a queue.

    Exits with 1 if there is no such queue; with --follow it waits for it.
    """
    queue, words = chosen_queue(**where)
    no_more_words(words)
    inspector, console = Inspector(queue), open_console()
    if not follow:
        seen = inspector.stat()
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(seen), indent=2))
        else:
            print_page(_page(seen), console)
        if not seen.is_known:
            say(queues_instead(inspector), err=True)
            raise SystemExit(1)
        return
    try:
        _follow(inspector, console, as_json)
    except KeyboardInterrupt:
        return


def _follow(inspector: Inspector, console: Console, as_json: bool) -> None:
    stats = _stats(inspector)
    if as_json:
        for seen in stats:
            click.echo(json.dumps(dataclasses.asdict(seen)))
    elif can_be_redrawn(console):
        with Live(console=console, auto_refresh=False, screen=True) as live:
            for seen in stats:
                live.update(rendered(_page(seen), console.width), refresh=True)
    else:
        for seen in stats:
            click.echo(_line(seen))


def _stats(inspector: Inspector) -> Iterator[QueueStat]:
    while True:
        yield inspector.stat()
        time.sleep(_INTERVAL_SECONDS)


def _line(seen: QueueStat) -> str:
    if not seen.is_known:
        return "\n".join(plain_lines(queue_heading(seen)))
    return (
        f"{timestamp(seen.now_ms)} waiting {seen.waiting:,} assigned {seen.assigned:,}"
        f" running {seen.running:,} delayed {seen.delayed:,} parked {seen.parked:,}"
        f" paused {seen.paused:,} held back {seen.held_back:,} dead {seen.dead:,}"
        f" done {seen.totals.done:,} workers {seen.living:,}"
        + "".join(f"; {pause.reason}" for pause in seen.pauses)
    )


def _page(seen: QueueStat) -> list[PagePart]:
    if not seen.is_known:
        return queue_heading(seen)
    parts: list[PagePart] = [
        *queue_heading(seen),
        *alarm_lines(seen),
        places_table(seen, per_worker=f"{seen.backlog_per_worker:,}"),
        workers_table(seen, _MOST_WORKERS),
    ]
    if seen.shards:
        parts.append(_shards(seen))
    if seen.parked_abilities:
        parts.append(_parked_abilities(seen))
    if seen.steps:
        verb = "waits" if seen.steps == 1 else "wait"
        steps = plural(seen.steps, "step")
        parts.append(f"Chains and groups: {steps} {verb} for others to end")
    parts += (_priorities(seen), f"So far: {totals_text(seen)}", _upkeep(seen))
    if seen.bytes is not None:
        largest = sorted(seen.bytes.items(), key=lambda item: -item[1])[:4]
        sizes = ", ".join(f"{name} {size:,}" for name, size in largest)
        total = sum(seen.bytes.values())
        parts.append(f"Memory: {total:,} bytes ({sizes}, …)")
    return parts


def _priorities(seen: QueueStat) -> str:
    urgent, normal, low = seen.inbox
    counts = f"Inbox: {urgent:,} urgent, {normal:,} normal, {low:,} low"
    age = oldest_age(seen)
    return f"{counts}; the oldest has been waiting for {age}" if age else counts


def _shards(seen: QueueStat) -> TextTable:
    columns = ("shard", "waiting", "held", "workers", "done")
    table = TextTable(columns, right=columns)
    for one in seen.shards:
        numbers = (one.waiting, one.held, one.living, one.done)
        table.add(f"{one.shard}", *(f"{number:,}" for number in numbers))
    return table


def _parked_abilities(seen: QueueStat) -> TextTable:
    table = TextTable(
        ("parked for", "tasks", "because"),
        right=("tasks",),
        prose=("because",),
        paint={"parked for": lambda _: NOTICE},
    )
    for parked in seen.parked_abilities:
        table.add(parked.ability, f"{parked.tasks:,}", parked.reason)
    return table


def _upkeep(seen: QueueStat) -> str:
    slices = ", ".join(f"{who} {n:,}" for who, n in seen.upkeep.slices.items())
    return f"{upkeep_line(seen)}; slices: {slices}" if slices else upkeep_line(seen)
