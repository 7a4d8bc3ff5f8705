"""The command `workstealing` and its subcommands, one module each."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click

from workstealing.cli.demo.demo_command import demo_command
from workstealing.cli.node_command import node_command
from workstealing.cli.plan_command import plan_command
from workstealing.cli.queue_command import queue_command
from workstealing.cli.recruit_command import recruit_command
from workstealing.cli.top_command import top_command
from workstealing.cli.web_command import web_command
from workstealing.cli.worker_command import worker_command

__all__ = ("workstealing",)


def _version() -> str:
    try:
        return version("workstealing")
    except PackageNotFoundError:
        return "(not installed, running from its folder)"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="workstealing")
def workstealing() -> None:
    """Background work without a background."""


for _command in (
    demo_command,
    node_command,
    plan_command,
    queue_command,
    recruit_command,
    top_command,
    web_command,
    worker_command,
):
    workstealing.add_command(_command)
