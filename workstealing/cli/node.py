"""`workstealing node`: a cluster node that speaks JSON on its standard streams."""

from __future__ import annotations

import sys

import click

from workstealing.cli.refusing import refusing
from workstealing.drivers.connect import driver
from workstealing.node.cluster import DEFAULT_SEED, Cluster
from workstealing.node.memory import MemoryState
from workstealing.node.node import Node
from workstealing.node.shared import SharedState

__all__ = ("node_command",)


@click.command("node")
@click.option(
    "--redis",
    "url",
    help="Keep the state there, with all other nodes; in memory unless given.",
)
@click.option(
    "--seed",
    type=int,
    default=DEFAULT_SEED,
    show_default=True,
    help="What victims and the lengths of simulated jobs are drawn by.",
)
@refusing()
def node_command(url: str | None, seed: int) -> None:
    """Coordinate work stealing: read messages from stdin, write replies to stdout.

    One JSON object a line, such as {"type": "check_cluster_state", "msg_id": 1}. What
    cannot be done gets an error for a reply. It ends with its input.
    """
    state = MemoryState() if url is None else SharedState(driver(url, "tasks"))
    Node(Cluster(state, seed)).serve(sys.stdin.buffer, sys.stdout.buffer)
