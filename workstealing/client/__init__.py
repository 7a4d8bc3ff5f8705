"""For those who have work to give: queues, tasks, handles."""

from __future__ import annotations
