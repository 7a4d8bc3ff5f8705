"""Sources of drivers in a child that is forked while a thread connects."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from workstealing.drivers.async_driver import AsyncDriverSource
from workstealing.drivers.sync_driver import DriverSource


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("kind", [DriverSource, AsyncDriverSource])
def test_a_child_does_not_wait_for_a_thread_of_its_parent_to_connect(kind: Any) -> None:
    parent, begun, may_end = os.getpid(), threading.Event(), threading.Event()

    def connect(url: str) -> str:
        if os.getpid() == parent:
            begun.set()
            may_end.wait(30)
        return f"a driver for {url}"

    source = kind("redis://h", connect)
    thread = threading.Thread(target=lambda: source.driver)
    thread.start()
    assert begun.wait(10)
    child = os.fork()
    if not child:
        # Ends it, should it wait for the lock.
        signal.alarm(10)
        os._exit(0 if source.driver == "a driver for redis://h" else 1)
    may_end.set()
    thread.join()

    assert os.waitpid(child, 0)[1] == 0
