"""Rehearsals: a task meets, on one's own machine, what production has in store."""

from __future__ import annotations
