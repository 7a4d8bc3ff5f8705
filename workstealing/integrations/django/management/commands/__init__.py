"""One module per command, as Django wants it."""

from __future__ import annotations
