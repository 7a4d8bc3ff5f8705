"""`manage.py workstealing_worker`: runs the tasks of a queue until told to stop."""

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
    """`workstealing worker` for a queue of the settings."""

    help = (
        "Run the tasks of a queue of the settings: its name, then what `workstealing"
        " worker` takes, such as --workers 8; QUEUE --help tells."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the name of a queue, and what `workstealing worker` takes."""
        parser.add_argument("queue", help="Its name.")
        parser.add_argument("words", nargs=REMAINDER, help="Options of the worker.")

    def handle(self, *_: Any, **options: Any) -> None:
        """Hand over to the command line."""
        need_command_line()
        from workstealing.cli.worker import worker_command

        place = place_of_queue(options["queue"])
        ask(worker_command, [place, *options["words"]], "workstealing_worker")
