"""`workstealing queue stat`: how a queue is, once or as it goes."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from workstealing.cli.choosing import chosen, nothing_more, queue_options
from workstealing.cli.refusing import refusing
from workstealing.cli.sheets import Part, Sheet, drawn, show
from workstealing.errors import RedisError
from workstealing.inspecting.inspector import Inspector
from workstealing.inspecting.values import Stat
from workstealing.inspecting.wording import moment, printable, span

__all__ = ("stat_command",)

_EVERY_SECONDS = 1.0
_WORKERS = 20
_OTHERS = 20


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
            show(_page(seen), console)
        if not seen.is_known:
            click.echo(_others(inspector), err=True)
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
                live.update(drawn(_page(seen), console.width), refresh=True)
    else:
        for seen in looks:
            click.echo(_line(seen))


def _looks(inspector: Inspector) -> Iterator[Stat]:
    while True:
        yield inspector.stat()
        time.sleep(_EVERY_SECONDS)


def _line(seen: Stat) -> str:
    if not seen.is_known:
        return f"{moment(seen.now_ms)} {_unknown(seen)}"
    return (
        f"{moment(seen.now_ms)} waiting {seen.waiting:,} assigned {seen.assigned:,}"
        f" running {seen.running:,} delayed {seen.delayed:,} parked {seen.parked:,}"
        f" dead {seen.dead:,} done {seen.totals.done:,} workers {seen.living:,}"
    )


def _others(inspector: Inspector) -> str:
    """Say which queues there are instead, if the server tells."""
    try:
        found = inspector.queues()
    except RedisError:
        return "which queues there are, the server does not tell"
    if not found.names:
        return "no queue was found there" if found.is_all else "none was found soon"
    names = [f"{queue}/{run}" for queue, run in found.names]
    more = ", …" if len(names) > _OTHERS or not found.is_all else ""
    return f"there are: {', '.join(map(printable, names[:_OTHERS]))}{more}"


def _page(seen: Stat) -> list[Part]:
    if not seen.is_known:
        return [_unknown(seen)]
    closed = ", closed: no more input" if seen.is_closed else ""
    parts: list[Part] = [
        f"{_named(seen)} at {moment(seen.now_ms)}{closed}",
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
        parts.append(f"Memory: {total:,} bytes ({sizes}, …)")
    return parts


def _named(seen: Stat) -> str:
    return f"{seen.queue}/{seen.run} on {seen.server}"


def _unknown(seen: Stat) -> str:
    return f"{_named(seen)}: there is no such queue, or nobody used it yet"


def _places(seen: Stat) -> Sheet:
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
    made = Sheet(tuple(numbers), right=tuple(numbers))
    made.add(*(f"{number:,}" for number in numbers.values()))
    return made


def _priorities(seen: Stat) -> str:
    urgent, normal, low = seen.inbox
    told = f"Inbox: {urgent:,} urgent, {normal:,} normal, {low:,} whenever"
    if seen.oldest_at_ms is None:
        return told
    return f"{told}; the oldest waits for {span(seen.now_ms - seen.oldest_at_ms)}"


def _totals(seen: Stat) -> str:
    told = (
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in dataclasses.asdict(seen.totals).items()
    )
    return f"So far: {', '.join(told)}"


def _workers(seen: Stat) -> Sheet:
    numbers = ("waiting", "running", "stolen", "renewed")
    made = Sheet(("worker", *numbers, "host", "process"), right=numbers)
    for worker in seen.workers[:_WORKERS]:
        renewed = f"{span(worker.lease_age_ms)} ago"
        made.add(
            worker.name,
            f"{worker.waiting:,}",
            f"{worker.running:,}",
            f"{worker.stolen:,}",
            renewed if worker.is_alive else f"dead {span(-worker.lease_left_ms)}",
            worker.host,
            str(worker.pid or ""),
        )
    if len(seen.workers) > _WORKERS:
        made.more.append(f"… {len(seen.workers) - _WORKERS:,} more")
    return made


def _parkings(seen: Stat) -> Sheet:
    made = Sheet(
        ("parked for", "tasks", "because"), right=("tasks",), prose=("because",)
    )
    for parked in seen.parkings:
        made.add(parked.ability, f"{parked.tasks:,}", parked.reason)
    return made


def _upkeep(seen: Stat) -> str:
    duties = ", ".join(
        f"{duty} {span(max(0, seen.now_ms - at_ms))} ago"
        for duty, at_ms in seen.upkeep.done_at_ms.items()
    )
    slices = ", ".join(f"{who} {n:,} ×" for who, n in seen.upkeep.slices.items())
    return f"Upkeep: {duties}; by {slices}" if duties else "Upkeep: none yet"
