"""`manage.py workstealing_recruit`: side work without requests, by cron or sidecar."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from workstealing.integrations.django.management.command_line import (
    require_command_line,
    run_command,
)
from workstealing.integrations.django.site import get_recruiter
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("Command", "ManageRecruit")


class ManageRecruit(BaseCommand):
    """`workstealing recruit` for the recruiter of the site."""

    help = (
        "Run a slice of each job, whatever its rate and the budget; with --every, do so"
        " until stopped."
    )
    recruiter: ClassVar[Recruiter]

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the options of `workstealing recruit`."""
        parser.add_argument(
            "--every", type=float, help="A round every so many seconds, until SIGTERM."
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Call the command line."""
        require_command_line()
        from workstealing.cli.recruit_command import recruit_command

        ManageRecruit.recruiter = get_recruiter()
        every = options["every"]
        often = ["--once"] if every is None else ["--every", str(every)]
        run_command(
            recruit_command,
            [f"{__name__}:ManageRecruit.recruiter", *often],
            "workstealing_recruit",
        )


Command = ManageRecruit
