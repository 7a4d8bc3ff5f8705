"""An in-process pool of workers with deques of their own; standard library only."""

from __future__ import annotations
