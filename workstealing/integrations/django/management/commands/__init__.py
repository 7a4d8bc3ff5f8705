"""One module per command, as Django requires."""

from __future__ import annotations
