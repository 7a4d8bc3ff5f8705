"""Submits tasks and waits for their results: queues, tasks, handles, clients."""

from __future__ import annotations
