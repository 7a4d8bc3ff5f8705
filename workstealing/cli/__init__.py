"""The command line; needs the extra `cli`."""

from __future__ import annotations
