"""The sites that `benchmarks.web` serves: one page at `/with` us and at `/none`.

The page is a list of a hundred lines that waits for nothing: little work for a page.
Both are one application in one process. Two processes of one program, and even two
applications of one process, differ by a percent or more in speed for as long as they
live, because of how their memory happens to lie.
"""

from __future__ import annotations

import os
from html import escape
from typing import Any

from workstealing import AsyncRecruiter, Recruiter
from workstealing.jobs import AsyncVolatileHash, VolatileHash

__all__ = ("RATE", "asgi_site", "flask_site")

RATE = 0.003

_LINES = [f"line {number} of <a> list & more" for number in range(100)]


def flask_site() -> Any:
    """Make a Flask application, and what chooses the way into it."""
    from flask import Flask

    from workstealing.integrations.flask import FlaskEnlist

    app = Flask("site")
    app.get("/<way>")(lambda way: _page())  # noqa: ARG005
    recruiter = Recruiter()
    sessions = VolatileHash(os.environ["SITE_REDIS"], "sessions")
    recruiter.install(sessions, "sessions", rate=RATE)
    ways = {"/none": app.wsgi_app}
    FlaskEnlist(app, recruiter=recruiter)
    ways["/with"] = app.wsgi_app

    def site(environ: Any, start_response: Any) -> Any:
        return ways[environ["PATH_INFO"]](environ, start_response)

    return site


def asgi_site() -> Any:
    """Make a Starlette application, and what chooses the way into it."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    from workstealing.integrations.starlette import StarletteEnlistMiddleware

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(_page())

    app = Starlette(routes=[Route("/{way}", page)])
    recruiter = AsyncRecruiter()
    sessions = AsyncVolatileHash(os.environ["SITE_REDIS"], "sessions")
    recruiter.install(sessions, "sessions", rate=RATE)
    ways: Any = {
        "/none": app,
        "/with": StarletteEnlistMiddleware(app, recruiter=recruiter),
    }

    async def site(scope: Any, receive: Any, send: Any) -> None:
        await ways[scope["path"]](scope, receive, send)

    return site


def _page() -> str:
    return "".join(f"<li>{escape(line)}</li>\n" for line in _LINES)
