"""The clock of a worker in a rehearsal: one thread reads it while another moves it."""

from __future__ import annotations

import sys
from itertools import count
from types import FrameType
from typing import Any

from workstealing.rehearsing.fault_injector import HeldClock


def test_a_clock_that_is_released_while_it_is_read_still_tells_the_time() -> None:
    clock = HeldClock()
    clock.hold()
    held_at = clock.monotonic()
    lines = count(1)

    def in_frame(frame: FrameType, event: str, argument: Any) -> Any:
        # Between the first line and the second, where threads may switch.
        if event == "line" and next(lines) == 2:
            clock.release(0.0)
        return in_frame

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        return in_frame if frame.f_code is HeldClock.monotonic.__code__ else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        told = clock.monotonic()
    finally:
        sys.settrace(before)

    assert told == held_at
