"""The whole story in about a minute, on the embedded server."""

from __future__ import annotations
