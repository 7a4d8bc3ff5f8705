"""`manage.py workstealing_worker`: runs the tasks of queues until it is stopped."""

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

__all__ = ("Command", "ManageWorker")


class ManageWorker(ForwardingCommand):
    """`workstealing worker` for queues of the settings."""

    help = (
        "Run the tasks of a queue of the settings, or of several. Takes their names,"
        " then the options of `workstealing worker`, such as --workers 8; QUEUE --help"
        " lists them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the names of queues, and the options of `workstealing worker`."""
        parser.add_argument("queue", nargs="+", help="The name of the queue.")
        parser.add_argument("words", nargs=REMAINDER, help="Options of the worker.")

    def command(self) -> click.Command:
        """Import `workstealing worker`."""
        from workstealing.cli.worker_command import worker_command

        return worker_command

    def words(self, options: dict[str, Any]) -> list[str]:
        """Return the arguments of `workstealing worker`."""
        return [*map(queue_reference, options["queue"]), *options["words"]]


Command = ManageWorker
