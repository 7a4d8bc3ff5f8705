"""The old and the new release of one program, side by side for comparison.

`python releases.py 1` is a worker of the old one, with 2 it is one of the new one.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

from workstealing import TaskQueue, Worker

__all__ = ("greet_1", "greet_2", "queue_1")

# Each release has its own object with its own tasks; in Redis it is one queue.
queue_1 = TaskQueue("rolling-upgrade")
queue_2 = TaskQueue("rolling-upgrade")


# Release 1:
@queue_1.task(name="greet", version=1)
def greet_1(name: str) -> str:
    """Greet somebody."""
    time.sleep(0.01)
    return f"release 1: Hello {name}"


# Release 2: two parameters, and an upgrade for payloads of release 1.
def upgrade(old: dict[str, Any]) -> dict[str, Any]:
    """Turn a payload of version 1 into one of version 2."""
    first, _, last = old["name"].partition(" ")
    return {"first": first, "last": last}


@queue_2.task(name="greet", version=2, accepts={1: upgrade})
def greet_2(first: str, last: str) -> str:
    """Greet somebody by both names."""
    time.sleep(0.01)
    return f"release 2: Dear {first} {last}"


if __name__ == "__main__":
    worker = Worker(queue_1 if sys.argv[1] == "1" else queue_2)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()
