"""The only reader: command line, dashboard and gauges all go through here."""

from __future__ import annotations
