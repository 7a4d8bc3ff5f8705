"""`manage.py workstealing_queue`: inspects a queue of the site, adds to it, ends it."""

from __future__ import annotations

from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from workstealing.integrations.django.management.command_line import (
    queue_reference,
    require_command_line,
    run_command,
)

__all__ = ("Command", "ManageQueue")


class ManageQueue(BaseCommand):
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

    def handle(self, *_: Any, **options: Any) -> None:
        """Call the command line."""
        require_command_line()
        from workstealing.cli.queue_command import queue_command

        what, words = options["what"], list(options["words"])
        if what != "add" and "--help" not in words:
            is_named = bool(words) and not words[0].startswith("-")
            words.insert(0, queue_reference(words.pop(0) if is_named else None))
        run_command(queue_command, [what, *words], "workstealing_queue")


Command = ManageQueue
