"""A worker of one library: `python -m benchmarks.peers.worker_process <library>`.

It imports next to nothing of its own: how long a worker takes to start is measured.
"""

from __future__ import annotations

import sys
from importlib import import_module

__all__ = ()


def main() -> None:
    """Work until killed."""
    working = import_module(f"benchmarks.peers.libraries.{sys.argv[1]}").work()
    if working is not None:
        import uvloop

        uvloop.run(working)


if __name__ == "__main__":
    main()
