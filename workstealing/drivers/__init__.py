"""The only code that imports redis-py: connecting, and performing calls."""

from __future__ import annotations
