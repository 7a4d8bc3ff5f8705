"""The command `workstealing`, and its subcommand `node`; the others have modules."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from workstealing.cli.consoles import open_console, say
from workstealing.cli.demo.demo_command import demo_command
from workstealing.cli.options import clear_errors
from workstealing.cli.plan_command import plan_command
from workstealing.cli.queue_command import queue_command
from workstealing.cli.recruit_command import recruit_command
from workstealing.cli.rehearse_command import rehearse_command
from workstealing.cli.schedule_command import schedule_command
from workstealing.cli.top_command import top_command
from workstealing.cli.web_command import web_command
from workstealing.cli.worker_command import worker_command
from workstealing.drivers.connect import driver
from workstealing.node.cluster import DEFAULT_SEED, Cluster
from workstealing.node.cluster_state import MemoryState
from workstealing.node.node import Node
from workstealing.node.shared_state import SharedState

__all__ = ("workstealing",)


def _version() -> str:
    try:
        return version("workstealing")
    except PackageNotFoundError:
        return "(not installed, running from its folder)"


class _Commands(click.Group):
    """Wraps what goes wrong between words, where a person reads it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as error:
            console = open_console(err=True)
            if console.is_terminal:
                say(f"Error: {error.format_message()}", err=True)
                ctx.exit(error.exit_code)
            raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="workstealing")
def workstealing() -> None:
    """Background work without a background."""


@workstealing.command("node")
@click.option(
    "--redis",
    "url",
    metavar="URL",
    help="Keep the state in this Redis, shared with other nodes.  [default: memory]",
)
@click.option(
    "--seed",
    type=int,
    default=DEFAULT_SEED,
    show_default=True,
    help="Seed for drawing victims and the lengths of simulated jobs.",
)
@clear_errors()
def _node(url: str | None, seed: int) -> None:
    """Coordinate work stealing over stdin and stdout.

    Messages and replies are JSON objects, one per line, such as
    {"type": "check_cluster_state", "msg_id": 1}. A request that cannot be met is
    answered by an error. The node exits at the end of its input.
    """
    state = MemoryState() if url is None else SharedState(driver(url, "tasks"))
    Node(Cluster(state, seed)).serve(sys.stdin.buffer, sys.stdout.buffer)


for _command in (
    demo_command,
    plan_command,
    queue_command,
    recruit_command,
    rehearse_command,
    schedule_command,
    top_command,
    web_command,
    worker_command,
):
    workstealing.add_command(_command)
