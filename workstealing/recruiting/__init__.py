"""Side work without state: a lottery, a small slice, and protection for the host."""

from __future__ import annotations
