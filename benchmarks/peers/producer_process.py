"""A producer of one library: `python -m benchmarks.peers.producer_process <library> …`.

It runs in the virtual environment of that library, and prints what it measured as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

from benchmarks.peers import producing

__all__ = ()


def main() -> None:
    """Do one thing, and end without waiting for what runs in the background."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("versions").add_argument("packages", nargs="*")
    submit = actions.add_parser("submit")
    submit.add_argument("task")
    submit.add_argument("count", type=int)
    submit.add_argument("--bulk", action="store_true")
    burst = actions.add_parser("bursts")
    burst.add_argument("count", type=int)
    burst.add_argument("size", type=int)
    burst.add_argument("every", type=float)
    trips = actions.add_parser("round_trips")
    trips.add_argument("count", type=int)
    trips.add_argument("idle_seconds", type=float)
    found = _do(parser.parse_args())
    sys.stdout.write(f"{json.dumps(found)}\n")
    sys.stdout.flush()
    os._exit(0)


def _do(arguments: argparse.Namespace) -> dict[str, Any]:
    library = import_module(f"benchmarks.peers.libraries.{arguments.library}")
    if arguments.action == "versions":
        return {package: version(package) for package in arguments.packages}
    producer = library.Producer()
    if arguments.action == "submit":
        flow = producing.submitting(
            producer, arguments.task, arguments.count, arguments.bulk
        )
    elif arguments.action == "bursts":
        flow = producing.bursts(
            producer, arguments.count, arguments.size, arguments.every
        )
    else:
        flow = producing.round_trips(producer, arguments.count, arguments.idle_seconds)
    return producing.run(producer, flow)


if __name__ == "__main__":
    main()
