"""For those who have time to give: workers, and the upkeep of a queue as a job."""

from __future__ import annotations
