"""Hooks on caches that exist already: a hit enlists, a miss may be told to you."""

from __future__ import annotations
