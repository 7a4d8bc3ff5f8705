"""What a task is: values and pure functions. Nothing here does I/O."""

from __future__ import annotations
