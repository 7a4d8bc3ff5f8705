"""For the tests of our users, and ours.

Servers are started from a binary and die with the test process; time and chance are
what the test says. The pytest fixtures are in `workstealing.testing.plugin`:
`pytest_plugins = ["workstealing.testing.plugin"]` in a `conftest.py`.
"""

from __future__ import annotations

from workstealing.testing.chance import ScriptedChance
from workstealing.testing.clock import ManualClock
from workstealing.testing.groups import ClusterOfThree, SentinelGroup
from workstealing.testing.observer import RecordingObserver
from workstealing.testing.servers import Server, ServerStartError, wait_until

__all__ = (
    "ClusterOfThree",
    "ManualClock",
    "RecordingObserver",
    "ScriptedChance",
    "SentinelGroup",
    "Server",
    "ServerStartError",
    "wait_until",
)
