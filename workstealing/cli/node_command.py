"""`workstealing node`: a coordinator of work stealing that reads and writes JSON."""

from __future__ import annotations

import sys

import click

from workstealing.cli.options import clear_errors
from workstealing.drivers.connect import driver
from workstealing.node.cluster import DEFAULT_SEED, Cluster
from workstealing.node.cluster_state import MemoryState
from workstealing.node.node import Node
from workstealing.node.shared_state import SharedState

__all__ = ("node_command",)


@click.command("node")
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
def node_command(url: str | None, seed: int) -> None:
    """Coordinate work stealing over stdin and stdout.

    Messages and replies are JSON objects, one per line, such as
    {"type": "check_cluster_state", "msg_id": 1}. A request that cannot be met is
    answered by an error. The node exits at the end of its input.
    """
    state = MemoryState() if url is None else SharedState(driver(url, "tasks"))
    Node(Cluster(state, seed)).serve(sys.stdin.buffer, sys.stdout.buffer)
