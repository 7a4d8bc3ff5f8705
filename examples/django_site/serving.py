"""A small server, and visitors for it: a real site does not need this."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from random import randrange
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Do not log requests."""


@contextmanager
def served(site: Any) -> Iterator[tuple[str, int]]:
    """Serve a WSGI application in threads, and return where."""
    with make_server("127.0.0.1", 0, site, _Server, _Quiet) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield ("127.0.0.1", server.server_port)
        server.shutdown()
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
        if answer.status != 200 or not answer.read().startswith(b"page"):
            raise RuntimeError(f"the site answered {answer.status}")
        connection.close()
        time.sleep(0.002)
    raise AssertionError("count() does not end")
