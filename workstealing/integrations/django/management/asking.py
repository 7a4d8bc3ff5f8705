"""Lets a command of `workstealing` do the work of a management command."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from django.core.management.base import CommandError

from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.integrations.django.shared import get_queue, get_settings

if TYPE_CHECKING:
    import click

__all__ = ("ask", "need_command_line", "place_of_queue")


def need_command_line() -> None:
    """Refuse to go on without the packages of the command line."""
    for package in ("click", "rich"):
        if find_spec(package) is None:
            raise CommandError(str(MissingExtra(package, "cli")))


def place_of_queue(name: str | None) -> str:
    """Return where the queue of that name is, or the only one: `MODULE:NAME`."""
    known = tuple(get_settings().queues)
    if name is None and len(known) != 1:
        raise CommandError(
            f"name the queue: {', '.join(known)}"
            if known
            else 'there is no queue: write WORKSTEALING["QUEUES"] = {"name": {}}',
            returncode=2,
        )
    chosen = known[0] if name is None else name
    try:
        get_queue(chosen)
    except ConfigurationError as error:
        raise CommandError(str(error), returncode=2) from error
    from workstealing.integrations.django.management.worker_queues import place_of

    return place_of(chosen)


def ask(command: click.Command, words: Sequence[str], name: str) -> None:
    """Run a command; what it refuses is told as Django does, with its exit code."""
    import click

    # Django has read these, wherever they stand.
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    _, own = parser.parse_known_args(words)
    try:
        command.main(own, prog_name=f"manage.py {name}", standalone_mode=False)
    except click.ClickException as error:
        raise CommandError(error.format_message(), returncode=error.exit_code) from None
