"""`manage.py workstealing_queue`: inspects a queue of the site, adds to it, ends it."""

from __future__ import annotations

from argparse import REMAINDER
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandParser

from workstealing.integrations.django.management.command_line import (
    ForwardingCommand,
    queue_reference,
)

if TYPE_CHECKING:
    import click

__all__ = ("Command", "ManageQueue")


class ManageQueue(ForwardingCommand):
    """`workstealing queue` for a queue of the settings."""

    help = (
        "Look at a queue (stat, ls, cat, tree, why, dead) or change it (cancel, replay,"
        " drop, drain, done): the command, the name of the queue, then what"
        " `workstealing queue` takes. To add a task: add MODULE:TASK name=value."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the arguments of `workstealing queue`."""
        parser.add_argument("what", help="stat, ls, cat, tree, why, add, drain, …")
        parser.add_argument(
            "words", nargs=REMAINDER, help="The name of a queue, and options."
        )

    def command(self) -> click.Command:
        """Import `workstealing queue`."""
        from workstealing.cli.queue_command import queue_command

        return queue_command

    def words(self, options: dict[str, Any]) -> list[str]:
        """Return the arguments of `workstealing queue`."""
        what, words = options["what"], list(options["words"])
        if what != "add" and "--help" not in words:
            is_named = bool(words) and not words[0].startswith("-")
            words.insert(0, queue_reference(words.pop(0) if is_named else None))
        return [what, *words]


Command = ManageQueue
