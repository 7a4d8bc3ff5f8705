"""What we ask of Redis, as values. Nothing here knows a socket."""

from __future__ import annotations
