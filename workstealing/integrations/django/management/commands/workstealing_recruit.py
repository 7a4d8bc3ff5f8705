"""`manage.py workstealing_recruit`: side work without requests, by cron or sidecar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandParser

from workstealing.integrations.django.management.command_line import (
    RECRUITER,
    ForwardingCommand,
)

if TYPE_CHECKING:
    import click

__all__ = ("Command", "ManageRecruit")


class ManageRecruit(ForwardingCommand):
    """`workstealing recruit` for the recruiter of the site."""

    help = (
        "Run a slice of each job, whatever its rate and the budget; with --every, do so"
        " until stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the options of `workstealing recruit`."""
        parser.add_argument(
            "--every", type=float, help="Seconds between two rounds, until SIGTERM."
        )

    def command(self) -> click.Command:
        """Import `workstealing recruit`."""
        from workstealing.cli.recruit_command import recruit_command

        return recruit_command

    def words(self, options: dict[str, Any]) -> list[str]:
        """Return the arguments of `workstealing recruit`."""
        every = options["every"]
        often = ["--once"] if every is None else ["--every", str(every)]
        return [RECRUITER, *often]


Command = ManageRecruit
