"""The command `workstealing`; each of its subcommands has a module.

A module is imported when its command is used: a look at a queue does not wait for the
import of workers, the demo and the dashboard.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from workstealing.cli.entry import INTERRUPTED

__all__ = ("workstealing",)

_MODULE_OF = {
    "demo": "demo.demo_command",
    "node": "node_command",
    "plan": "plan_command",
    "queue": "queue_command",
    "recruit": "recruit_command",
    "rehearse": "rehearse_command",
    "schedule": "schedule_command",
    "top": "top_command",
    "web": "web_command",
    "worker": "worker_command",
}
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _version() -> str:
    try:
        return version("workstealing")
    except PackageNotFoundError:
        return "(not installed, running from its folder)"


class _Commands(click.Group):
    """Imports its commands when they are used; wraps errors on a terminal."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_MODULE_OF})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _MODULE_OF and cmd_name not in self.commands:
            try:
                module = import_module(f"workstealing.cli.{_MODULE_OF[cmd_name]}")
            except KeyboardInterrupt:
                raise SystemExit(INTERRUPTED) from None
            self.add_command(getattr(module, f"{cmd_name}_command"))
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as error:
            from workstealing.cli.consoles import open_console, say

            if open_console(err=True).is_terminal:
                say(f"Error: {error.format_message()}", err=True)
                ctx.exit(error.exit_code)
            raise

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            # Python would try once more to write what is left when it exits.
            with open(os.devnull, "w", encoding="utf-8") as nothing:
                os.dup2(nothing.fileno(), sys.stdout.fileno())
            raise click.ClickException(
                f"the output could not be written: {error.strerror}"
            ) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="workstealing")
def workstealing() -> None:
    """Run workers, look at queues and do side work on Redis."""
