"""`manage.py workstealing_recruit`: side work without requests, by cron or sidecar."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from workstealing.integrations.django.management.asking import ask, need_command_line
from workstealing.integrations.django.shared import get_recruiter
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("Command",)


class Command(BaseCommand):
    """`workstealing recruit` for the recruiter of the site."""

    help = "Do a slice of each job, lottery and budget aside; with --every for ever."
    recruiter: ClassVar[Recruiter]

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what `workstealing recruit` takes."""
        parser.add_argument(
            "--every", type=float, help="A round every so many seconds, until SIGTERM."
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Hand over to the command line."""
        need_command_line()
        from workstealing.cli.recruit import recruit_command

        Command.recruiter = get_recruiter()
        every = options["every"]
        often = ["--once"] if every is None else ["--every", str(every)]
        ask(
            recruit_command,
            [f"{__name__}:Command.recruiter", *often],
            "workstealing_recruit",
        )
