"""Management commands: thin over the command line `workstealing`."""

from __future__ import annotations
