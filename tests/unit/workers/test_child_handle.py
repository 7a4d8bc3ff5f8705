"""A child process of a pool, as the pool sees it."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from workstealing.workers.child_handle import ChildHandle


def child_that_ended_with(code: int) -> ChildHandle:
    process: Any = SimpleNamespace(exitcode=code)
    unused: Any = None
    return ChildHandle(0, "w.0", "incarnation", process, unused, unused)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (3, "exit code 3"),
        (-signal.SIGSEGV, "SIGSEGV"),
        # A real-time signal, for which Python has no name.
        (-40, "signal 40"),
    ],
)
def test_the_cause_of_a_death_is_told_for_every_signal(code: int, cause: str) -> None:
    assert child_that_ended_with(code).cause == cause
