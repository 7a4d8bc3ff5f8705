"""A small server, and visitors for it: a real site does not need this."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from random import randrange
from threading import Thread
from typing import Any

import uvicorn


@contextmanager
def served(site: Any) -> Iterator[tuple[str, int]]:
    """Serve an ASGI application in a thread, and return where."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        server = uvicorn.Server(uvicorn.Config(site, log_level="critical"))
        sockets = {"sockets": [listener]}
        thread = Thread(target=server.run, kwargs=sockets, daemon=True)
        thread.start()
        yield listener.getsockname()
        server.should_exit = True
        thread.join()


def loaded(address: tuple[str, int], seconds: float) -> int:
    """Send visitors, a new one now and then, to thirty pages; return how many came."""
    end = time.monotonic() + seconds
    for number in count():
        if time.monotonic() >= end:
            return number
        connection = HTTPConnection(*address, timeout=10)
        connection.request("GET", f"/{randrange(30)}?visitor={number // 5}")
        answer = connection.getresponse()
        if answer.status != 200 or b"page" not in answer.read():
            raise RuntimeError(f"the site answered {answer.status}")
        connection.close()
        time.sleep(0.002)
    raise AssertionError("count() does not end")
