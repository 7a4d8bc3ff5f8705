"""A web page on the queues of a server; needs the extra `dashboard`."""

from __future__ import annotations
