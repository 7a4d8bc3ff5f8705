"""Runs commands of `workstealing` as management commands, on queues of the settings.

The command line, and the processes of a pool, find a queue by `MODULE:NAME`, so each
queue of the settings becomes a global of this module. A child process that looks one up
sets Django up first.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import django
from django.apps import apps
from django.core.management.base import CommandError

from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.integrations.django.site import get_queue, get_settings

if TYPE_CHECKING:
    import click

__all__ = ("queue_reference", "require_command_line", "run_command")

_PREFIX = "queue_"


def require_command_line() -> None:
    """Raise unless the packages of the command line are installed."""
    for package in ("click", "rich"):
        if find_spec(package) is None:
            raise CommandError(str(MissingExtra(package, "cli")))


def queue_reference(name: str | None) -> str:
    """Return the `MODULE:NAME` of a queue; None is the only queue of the settings."""
    known = tuple(get_settings().queues)
    if name is None and len(known) != 1:
        raise CommandError(
            f"which queue? The settings have {', '.join(known)}"
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
    variable = f"{_PREFIX}{known.index(chosen)}"
    globals()[variable] = queue
    return f"{__name__}:{variable}"


def run_command(command: click.Command, words: Sequence[str], name: str) -> None:
    """Run a command; its errors become Django's, with the same exit code."""
    import click

    # Django has read these, wherever they stand.
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    _, own = parser.parse_known_args(words)
    try:
        command.main(own, prog_name=f"manage.py {name}", standalone_mode=False)
    except click.ClickException as error:
        raise CommandError(error.format_message(), returncode=error.exit_code) from None


def __getattr__(variable: str) -> Any:
    # Only a child process gets here: its parent has called queue_reference().
    if variable.startswith(_PREFIX):
        if not apps.ready:
            django.setup()
        known = tuple(get_settings().queues)
        number = variable.removeprefix(_PREFIX)
        if number.isdecimal() and int(number) < len(known):
            return get_queue(known[int(number)])
    raise AttributeError(f"module {__name__!r} has no attribute {variable!r}")
