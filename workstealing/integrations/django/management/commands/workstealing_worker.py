"""`manage.py workstealing_worker`: runs the tasks of a queue until it is stopped."""

from __future__ import annotations

from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from workstealing.integrations.django.management.command_line import (
    queue_reference,
    require_command_line,
    run_command,
)

__all__ = ("Command", "ManageWorker")


class ManageWorker(BaseCommand):
    """`workstealing worker` for a queue of the settings."""

    help = (
        "Run the tasks of a queue of the settings. Takes its name, then the options of"
        " `workstealing worker`, such as --workers 8; QUEUE --help lists them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the name of a queue, and the options of `workstealing worker`."""
        parser.add_argument("queue", help="The name of the queue.")
        parser.add_argument("words", nargs=REMAINDER, help="Options of the worker.")

    def handle(self, *_: Any, **options: Any) -> None:
        """Call the command line."""
        require_command_line()
        from workstealing.cli.worker_command import worker_command

        reference = queue_reference(options["queue"])
        words = [reference, *options["words"]]
        run_command(worker_command, words, "workstealing_worker")


Command = ManageWorker
