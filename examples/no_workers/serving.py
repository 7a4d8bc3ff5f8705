"""A small server in a process of its own: a real site has gunicorn for that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server


class Site:
    """One process that serves pages, until it is killed or the block ends."""

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, script, "serve"], stdout=subprocess.PIPE, text=True
        )
        self.noted = 0

    def __enter__(self) -> Site:
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        return self

    def visit(self, page: str) -> None:
        """Ask for a page, and count those that are noted."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("GET", page)
        answer = connection.getresponse()
        if answer.status != 200 or not answer.read():
            raise RuntimeError(f"the site answered {answer.status}")
        connection.close()
        self.noted += page != "/"

    def kill(self) -> None:
        """End the process as the kernel would, without a word."""
        self._process.kill()
        self._process.wait()

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Do not log requests."""


def serve(answer: Callable[[str], str], wrapped: Callable[[Any], Any]) -> None:
    """Answer requests for ever, and print the port first."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = answer(environ["PATH_INFO"]).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    with make_server("127.0.0.1", 0, wrapped(app), handler_class=_Quiet) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
