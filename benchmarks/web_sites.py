"""The sites that `benchmarks.web` serves: one page at `/with` us and at `/without`.

The page is a list of a hundred lines that waits for nothing: little work for a page.
Both are in one process. Two processes of one program differ by several percent in
speed, for as long as they live, because of how their memory happens to lie.
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
    """Make two Flask applications, and what chooses between them."""
    from flask import Flask

    from workstealing.integrations.flask import Enlist

    with_us, without = Flask("with"), Flask("without")
    with_us.get("/with")(_page)
    without.get("/without")(_page)
    recruiter = Recruiter()
    sessions = VolatileHash(os.environ["SITE_REDIS"], "sessions")
    recruiter.install(sessions, "sessions", rate=RATE)
    Enlist(with_us, recruiter=recruiter)
    sites = {"/with": with_us, "/without": without}

    def site(environ: Any, start_response: Any) -> Any:
        return sites[environ["PATH_INFO"]](environ, start_response)

    return site


def asgi_site() -> Any:
    """Make two Starlette applications, and what chooses between them."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    from workstealing.integrations.starlette import EnlistMiddleware

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(_page())

    recruiter = AsyncRecruiter()
    sessions = AsyncVolatileHash(os.environ["SITE_REDIS"], "sessions")
    recruiter.install(sessions, "sessions", rate=RATE)
    enlisting = Middleware(EnlistMiddleware, recruiter=recruiter)
    sites = {
        "/with": Starlette(routes=[Route("/with", page)], middleware=[enlisting]),
        "/without": Starlette(routes=[Route("/without", page)]),
    }

    async def site(scope: Any, receive: Any, send: Any) -> None:
        await sites[scope["path"]](scope, receive, send)

    return site


def _page() -> str:
    return "".join(f"<li>{escape(line)}</li>\n" for line in _LINES)
