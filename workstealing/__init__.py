"""Background work without a background."""

from __future__ import annotations
