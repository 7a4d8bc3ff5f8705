"""Rehearsals: a task goes through the failures of production on one's own machine."""

from __future__ import annotations
