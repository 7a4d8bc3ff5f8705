"""Tools for tests, of users and of this project.

Servers are started from a binary and end with the test process; time and chance are
set by the test. The pytest fixtures are in `workstealing.testing.plugin`:
`pytest_plugins = ["workstealing.testing.plugin"]` in a `conftest.py`.
"""

from __future__ import annotations

from workstealing.testing.fakes import ManualClock, RecordingObserver, ScriptedChance
from workstealing.testing.groups import ClusterOfThree, SentinelGroup
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
