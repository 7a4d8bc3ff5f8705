"""A demonstration in less than a minute, on the embedded server."""

from __future__ import annotations
