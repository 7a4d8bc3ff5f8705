"""The commands of `workstealing`, one module each."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import click

from workstealing.cli.demo.command import demo_command
from workstealing.cli.node import node_command
from workstealing.cli.plan import plan_command
from workstealing.cli.queue import queue_command
from workstealing.cli.recruit import recruit_command
from workstealing.cli.top import top_command
from workstealing.cli.web import web_command
from workstealing.cli.worker import worker_command

__all__ = ("workstealing",)


def _version() -> str:
    try:
        return version("workstealing")
    except PackageNotFoundError:
        return "(not installed, run from its folder)"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="workstealing")
def workstealing() -> None:
    """Background work without a background."""


workstealing.add_command(demo_command)
workstealing.add_command(node_command)
workstealing.add_command(plan_command)
workstealing.add_command(queue_command)
workstealing.add_command(recruit_command)
workstealing.add_command(top_command)
workstealing.add_command(web_command)
workstealing.add_command(worker_command)
