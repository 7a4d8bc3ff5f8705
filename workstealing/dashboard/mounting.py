"""Puts the dashboard into a site, as an ASGI or a WSGI application.

`allow` is called for each request before anything is shown, with a Starlette request or
the WSGI environment. It returns True (or "full"), "read-only", or False.

Under WSGI the pages are made by an event loop in a thread, which each process starts
with its first request, also after a fork.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from inspect import isawaitable
from threading import Lock, Thread
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workstealing.dashboard.app import create_app
from workstealing.dashboard.dashboard_data import DashboardData, named_queue
from workstealing.dashboard.site_guard import (
    SITE_ACCESS,
    Access,
    SiteGuard,
    checked_access,
)
from workstealing.drivers.connect import connect_async
from workstealing.errors import ConfigurationError

__all__ = ("DashboardThread", "Page", "asgi_dashboard", "wsgi_dashboard")

Allow = Callable[[Request], "bool | str | Awaitable[bool | str | None] | None"]
AllowWsgi = Callable[[dict[str, Any]], "bool | str | None"]

# A page answers within the timeouts of Redis; this only ends what hangs.
_LONGEST_SECONDS = 60.0
_LARGEST_BODY = 70_000


def asgi_dashboard(
    url: str | None = None, *, allow: Allow, queues: Iterable[str] = ()
) -> ASGIApp:
    """Return an application to mount: `app.mount("/queues", asgi_dashboard(…))`.

    Args:
        url: the Redis server; by default the configured one.
        allow: says of each request what it may do: True (or "full"), "read-only", or
            False. It may be a coroutine function, and may raise what the site handles.
        queues: names of queues, `name` or `name/run`, that are shown first.
    """
    _check_allow(allow)
    app = _site_app(url, tuple(queues))

    async def dashboard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            answer = allow(Request(scope))
            if isawaitable(answer):
                answer = await answer
            scope = {**scope, SITE_ACCESS: checked_access(answer)}
        await app(scope, receive, send)

    return dashboard


def wsgi_dashboard(
    url: str | None = None, *, allow: AllowWsgi, queues: Iterable[str] = ()
) -> Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]:
    """Return a WSGI application; a dispatcher puts it under a path of a site.

    Args:
        url: the Redis server; by default the configured one.
        allow: gets the environment of a request and says what it may do: True (or
            "full"), "read-only", or False.
        queues: names of queues, `name` or `name/run`, that are shown first.
    """
    _check_allow(allow)
    thread = DashboardThread(url, tuple(queues))

    def dashboard(
        environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> list[bytes]:
        root = environ.get("SCRIPT_NAME", "")
        path = root + environ.get("PATH_INFO", "")
        page = thread.page(environ, root, path, checked_access(allow(environ)))
        start_response(page.status_line, page.headers)
        return [page.body]

    return dashboard


@dataclass(slots=True)
class Page:
    """What the dashboard answers."""

    status: int = 500
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def status_line(self) -> str:
        """Return the status as WSGI wants it."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"


class DashboardThread:
    """A dashboard that runs in an event loop of its own, for sites without one."""

    def __init__(self, url: str | None, queues: tuple[str, ...]) -> None:
        self._url = url
        self._queues = queues
        self._lock = Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._app: ASGIApp | None = None

    def page(
        self, environ: dict[str, Any], root: str, path: str, access: Access | None
    ) -> Page:
        """Answer one request."""
        loop, app = self._running()
        scope = {**_scope(environ, root, path), SITE_ACCESS: access}
        answer = _answered(app, scope, _body(environ))
        future = asyncio.run_coroutine_threadsafe(answer, loop)
        try:
            return future.result(_LONGEST_SECONDS)
        finally:
            # Nobody waits any more for a page that takes longer.
            future.cancel()

    def _running(self) -> tuple[asyncio.AbstractEventLoop, ASGIApp]:
        if self._pid != os.getpid():
            # A child must not wait for a lock that its parent held.
            self._lock, self._loop, self._pid = Lock(), None, os.getpid()
        with self._lock:
            if self._loop is None or self._app is None:
                self._loop = asyncio.new_event_loop()
                self._app = _site_app(self._url, self._queues)
                Thread(
                    target=self._loop.run_forever,
                    name="workstealing-dashboard",
                    daemon=True,
                ).start()
            return self._loop, self._app


def _site_app(url: str | None, names: tuple[str, ...]) -> ASGIApp:
    client = connect_async(url, profile="tasks")
    queues = [named_queue(name, client) for name in names]
    return create_app(DashboardData(client, queues), SiteGuard())


def _check_allow(allow: object) -> None:
    if not callable(allow):
        raise ConfigurationError(
            "allow must be a function that says of a request what it may do: True,"
            f" 'read-only' or False; got {allow!r}"
        )


async def _answered(app: ASGIApp, scope: Scope, body: bytes) -> Page:
    page = Page()
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            page.status = message["status"]
            page.headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message["headers"]
            ]
        elif message["type"] == "http.response.body":
            page.body += message.get("body", b"")

    await app(scope, receive, send)
    return page


def _scope(environ: dict[str, Any], root: str, path: str) -> Scope:
    headers = [
        (name[5:].replace("_", "-").lower().encode(), value.encode("latin-1"))
        for name, value in environ.items()
        if name.startswith("HTTP_")
    ]
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            written = name.replace("_", "-").lower().encode()
            headers.append((written, str(environ[name]).encode("latin-1")))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": environ["REQUEST_METHOD"],
        "scheme": environ.get("wsgi.url_scheme", "http"),
        # WSGI has the bytes of a path as if they were Latin-1.
        "path": path.encode("latin-1", errors="replace").decode(errors="replace"),
        "raw_path": path.encode("latin-1", errors="replace"),
        "root_path": root,
        "query_string": environ.get("QUERY_STRING", "").encode("latin-1"),
        "headers": headers,
        "client": (environ.get("REMOTE_ADDR", "?"), 0),
        "server": (environ.get("SERVER_NAME", "localhost"), None),
    }


def _body(environ: dict[str, Any]) -> bytes:
    """Read a form; of one that is larger than any of ours, enough to refuse it."""
    length = environ.get("CONTENT_LENGTH") or "0"
    most = min(int(length), _LARGEST_BODY) if length.isdecimal() else 0
    body: bytes = environ["wsgi.input"].read(most) if most else b""
    return body
