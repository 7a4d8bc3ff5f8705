"""The queues of the settings as globals: how processes of a pool find them.

A child process imports this module as its parent did, and with it sets Django up.
"""

from __future__ import annotations

import django
from django.apps import apps

from workstealing.integrations.django.shared import get_queue, get_settings

__all__ = ("place_of",)


def place_of(name: str) -> str:
    """Return where a queue is, as the command line wants it: `MODULE:NAME`."""
    return f"{__name__}:{_variables[name]}"


if not apps.ready:
    django.setup()
# The name of a queue may have dots and dashes.
_variables = {name: f"queue_{n}" for n, name in enumerate(get_settings().queues)}
globals().update((variable, get_queue(name)) for name, variable in _variables.items())
