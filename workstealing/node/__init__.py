"""A cluster node: work stealing by messages, in memory or shared over Redis."""

from __future__ import annotations

from workstealing.node.cluster import Cluster
from workstealing.node.cluster_state import MemoryState
from workstealing.node.node import Node

__all__ = ("Cluster", "MemoryState", "Node")
