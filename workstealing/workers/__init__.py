"""Run tasks: workers, pools of workers, and the upkeep of a queue as a job."""

from __future__ import annotations
