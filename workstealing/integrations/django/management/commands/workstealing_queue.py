"""`manage.py workstealing_queue`: look at a queue of the site, add to it, end it."""

from __future__ import annotations

from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from workstealing.integrations.django.management.asking import (
    ask,
    need_command_line,
    place_of_queue,
)

__all__ = ("Command",)


class Command(BaseCommand):
    """`workstealing queue` for a queue of the settings."""

    help = (
        "Look at one (stat, ls, cat, tree, why) or end it (drain, done, dead). What,"
        " the name of the queue, then what `workstealing queue` takes. Add a task: add"
        " MODULE:TASK name=value."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what `workstealing queue` takes."""
        parser.add_argument("what", help="stat, ls, cat, tree, why, add, drain, …")
        parser.add_argument(
            "words", nargs=REMAINDER, help="The name of a queue, and what is asked."
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Hand over to the command line."""
        need_command_line()
        from workstealing.cli.queue import queue_command

        what, words = options["what"], list(options["words"])
        if what != "add" and "--help" not in words:
            is_named = bool(words) and not words[0].startswith("-")
            words.insert(0, place_of_queue(words.pop(0) if is_named else None))
        ask(queue_command, [what, *words], "workstealing_queue")
