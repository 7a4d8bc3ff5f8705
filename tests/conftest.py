"""The fixtures of all tests: servers, clients and key prefixes."""

from __future__ import annotations

pytest_plugins = ["workstealing.testing.plugin"]
