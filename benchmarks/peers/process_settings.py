"""What the driver tells a process of a library: where Redis is, how to be set up.

It goes through the environment, so that it also reaches workers that a library starts
with a command of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ("PAYLOAD", "SETTINGS", "URL", "environment")

# The short text that goes with the number of each task.
PAYLOAD = "hello world"

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

URL = os.environ.get("PEERS_REDIS_URL", "redis://127.0.0.1:6379/0")
SETTINGS: dict[str, Any] = json.loads(os.environ.get("PEERS_SETTINGS", "{}"))


def environment(
    root: Path, url: str, trace: Path, settings: Mapping[str, Any]
) -> dict[str, str]:
    """Return the environment of a process with these settings."""
    # pip compiles what it installs. This package runs from its checkout, and where no
    # bytecode is kept it would be compiled anew by each process that starts.
    inherited = {k: v for k, v in os.environ.items() if k != _NO_BYTECODE}
    return {
        **inherited,
        "PYTHONPATH": str(root),
        "PEERS_REDIS_URL": url,
        "PEERS_TRACE": str(trace),
        "PEERS_SETTINGS": json.dumps(settings),
    }
