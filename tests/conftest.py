"""The fixtures of all tests (servers, clients and key prefixes), and their order.

Hypothesis draws what is foreign to us, such as bytes that others wrote: the same each
time, so that no change is blamed for what another one did. `make slow` sets
FRESH_EXAMPLES, and draws more, and others each time. What fails is printed with the
decorator that gives it again, and comes first in the next run.
"""

from __future__ import annotations

import os
import signal
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

pytest_plugins = ["workstealing.testing.plugin"]

# What a shell starts in the background ignores this signal, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

_IS_FRESH = bool(os.environ.get("FRESH_EXAMPLES"))

# A deadline is a timed assertion, which a loaded machine fails.
settings.register_profile("untimed", deadline=None)
settings.register_profile(
    "foreign",
    deadline=None,
    max_examples=100 if _IS_FRESH else 40,
    derandomize=not _IS_FRESH,
    # Also where CI is set, for which Hypothesis keeps nothing: .ci/again.py must not
    # take it for an accident.
    database=DirectoryBasedExampleDatabase(".hypothesis/examples")
    if _IS_FRESH
    else None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("untimed")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Where several processes test, mix modules that wait with those that compute.

    By folders, all that wait for servers and processes would be left for the end, with
    idle processors.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: crc32(item.nodeid.partition("::")[0].encode()))
