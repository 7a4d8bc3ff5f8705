"""Management commands: a thin layer over the command line `workstealing`."""

from __future__ import annotations
