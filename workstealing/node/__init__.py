"""A cluster node: work stealing by messages, in memory or shared over Redis."""

from __future__ import annotations
