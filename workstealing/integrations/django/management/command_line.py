"""Runs commands of `workstealing` as management commands, on queues of the settings.

The command line, and the processes of a pool, find a recruiter or a queue by
`MODULE:NAME`, so those of the site are globals of this module. A child process that
looks up a queue sets Django up first.
"""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import django
from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.integrations.django.site import (
    get_queue,
    get_recruiter,
    get_settings,
)

if TYPE_CHECKING:
    import click

__all__ = ("RECRUITER", "ForwardingCommand", "queue_reference")

RECRUITER = f"{__name__}:recruiter"
"""The `MODULE:NAME` of the recruiter of the site."""

_PREFIX = "queue_"


class ForwardingCommand(BaseCommand):
    """A management command that passes its arguments to a command of `workstealing`."""

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the command; its errors become Django's, with the same exit code."""
        for package in ("click", "rich"):
            if find_spec(package) is None:
                raise CommandError(str(MissingExtra(package, "cli")))
        import click

        command = self.command()
        # Django has read these, wherever they stand.
        parser = ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--settings")
        parser.add_argument("--pythonpath")
        words = parser.parse_known_args(self.words(options))[1]
        try:
            command.main(
                words,
                prog_name=f"manage.py workstealing_{command.name}",
                standalone_mode=False,
            )
        except click.ClickException as error:
            raise CommandError(
                error.format_message(), returncode=error.exit_code
            ) from None

    def command(self) -> click.Command:
        """Import the command, which needs the packages of the command line."""
        raise NotImplementedError

    def words(self, options: dict[str, Any]) -> list[str]:
        """Return what `workstealing` would be given on its command line."""
        raise NotImplementedError


def queue_reference(name: str | None) -> str:
    """Return the `MODULE:NAME` of a queue; None is the only queue of the settings."""
    known = tuple(get_settings().queues)
    if name is None and len(known) != 1:
        raise CommandError(
            f"name a queue: the settings have {', '.join(known)}"
            if known
            else 'no queue is configured: set WORKSTEALING["QUEUES"] = {"name": {}}',
            returncode=2,
        )
    chosen = known[0] if name is None else name
    try:
        queue = get_queue(chosen)
    except ConfigurationError as error:
        raise CommandError(str(error), returncode=2) from error
    # The name of a queue may have dots and dashes.
    variable = f"{_PREFIX}{chosen.encode().hex()}"
    globals()[variable] = queue
    return f"{__name__}:{variable}"


def __getattr__(variable: str) -> Any:
    if variable == "recruiter":
        return get_recruiter()
    # Only a child process gets here: its parent has called queue_reference().
    if variable.startswith(_PREFIX):
        if not apps.ready:
            django.setup()
        with suppress(ValueError, ConfigurationError):
            return get_queue(bytes.fromhex(variable.removeprefix(_PREFIX)).decode())
    raise AttributeError(f"module {__name__!r} has no attribute {variable!r}")
