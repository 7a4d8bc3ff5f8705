"""`workstealing queue limits ls | set | reset`: limits, while the queue runs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from workstealing._printing import on_one_line
from workstealing.cli.consoles import say
from workstealing.cli.options import (
    BadInput,
    chosen_queue,
    clear_errors,
    json_option,
    queue_options,
    single_word,
)
from workstealing.cli.unknown_queue import no_such_queue
from workstealing.inspecting.stat_rows import limit_text
from workstealing.queue.limit_calls import LimitState

__all__ = ("limits_command",)


@click.group("limits")
def limits_command() -> None:
    """Look at limits, and change them without a deploy.

    A limit is known once a task with it was submitted.
    """


@limits_command.command("ls")
@queue_options("[NAME]")
@click.option("--key", help="Show how much of each limit this key uses.")
@json_option
@clear_errors()
def _ls_limits(key: str | None, as_json: bool, **where: Any) -> None:
    """List limits, and the keys that hold tasks back."""
    queue, words = chosen_queue(**where)
    name = single_word(words, "the name of one limit") if words else None
    found = queue.limits(name, key=key)
    if not found:
        say(no_such_queue(queue) or "no limits", err=True)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(limit) for limit in found]))
    else:
        for limit in found:
            say(_described(limit))
            for use in limit.keys:
                shown = f"{limit.name}={use.key}" if use.key else limit.name
                counts = f"{use.held_back:,} held back"
                if limit.rate is None:
                    # A rate counts beginnings; nothing holds a permit of it.
                    counts = f"{use.running:,} running, {counts}"
                click.echo(f"  {on_one_line(shown)}: {counts}")


@limits_command.command("set")
@queue_options("NAME")
@click.option("--concurrency", type=int, help="Tasks that may run at once.")
@click.option("--rate", type=int, help="Tasks that may start in each period.")
@click.option("--period", type=float, metavar="SECONDS", help="Length of a period.")
@clear_errors()
def _set_limit(
    concurrency: int | None, rate: int | None, period: float | None, **where: Any
) -> None:
    """Override the numbers of a limit until `limits reset`."""
    if (concurrency is None) == (rate is None) or (rate is None) != (period is None):
        raise BadInput("give --concurrency, or --rate and --period")
    queue, words = chosen_queue(**where)
    name = single_word(words, "the name of one limit")
    queue.set_limit(name, concurrency=concurrency, rate=rate, period=period)
    click.echo(_described(*queue.limits(name)))


@limits_command.command("reset")
@queue_options("NAME")
@clear_errors()
def _reset_limit(**where: Any) -> None:
    """Go back to the numbers of the code."""
    queue, words = chosen_queue(**where)
    name = single_word(words, "the name of one limit")
    queue.reset_limit(name)
    click.echo(_described(*queue.limits(name)))


def _described(limit: LimitState) -> str:
    return on_one_line(f"{limit.name}: {limit_text(limit)}")
