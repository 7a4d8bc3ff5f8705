"""The fixtures of all tests: servers, clients and key prefixes."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["workstealing.testing.plugin"]

# A deadline is a timed assertion, which a loaded machine fails.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
