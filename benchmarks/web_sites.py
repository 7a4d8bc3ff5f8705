"""The sites of `benchmarks.web` and `brief`: one page at `/with` us and at `/none`.

The page is a list of a hundred lines that waits for nothing: little work for a page.
Both are one application in one process. Two processes of one program, and even two
applications of one process, differ by a percent or more in speed for as long as they
live, because of how their memory happens to lie.
"""

from __future__ import annotations

import os
from html import escape
from typing import Any

from workstealing import (
    AsyncBriefTasks,
    AsyncRecruiter,
    AsyncTaskQueue,
    BriefTasks,
    Recruiter,
    TaskQueue,
)
from workstealing.jobs import AsyncVolatileHash, VolatileHash

__all__ = ("asgi_site", "flask_site")

_RATES = {"sessions": 0.003, "brief": 0.01}

_LINES = [f"line {number} of <a> list & more" for number in range(100)]


def flask_site() -> Any:
    """Make a Flask application, and what chooses the way into it."""
    from flask import Flask

    from workstealing.integrations.flask import FlaskEnlist

    app = Flask("site")
    app.get("/<way>")(lambda way: _page())  # noqa: ARG005
    recruiter = Recruiter(share=float(os.environ["SITE_SHARE"]))
    recruiter.install(_job(), "job", rate=_RATES[os.environ["SITE_JOB"]])
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
    recruiter = AsyncRecruiter(share=float(os.environ["SITE_SHARE"]))
    recruiter.install(_async_job(), "job", rate=_RATES[os.environ["SITE_JOB"]])
    ways: Any = {
        "/none": app,
        "/with": StarletteEnlistMiddleware(app, recruiter=recruiter),
    }

    async def site(scope: Any, receive: Any, send: Any) -> None:
        await ways[scope["path"]](scope, receive, send)

    return site


def _job() -> Any:
    redis = os.environ["SITE_REDIS"]
    if os.environ["SITE_JOB"] == "sessions":
        return VolatileHash(redis, "sessions")
    queue = TaskQueue("brief", redis)
    queue.task(name="visit", brief=True)(_visited)
    return BriefTasks(queue)


def _async_job() -> Any:
    redis = os.environ["SITE_REDIS"]
    if os.environ["SITE_JOB"] == "sessions":
        return AsyncVolatileHash(redis, "sessions")
    queue = AsyncTaskQueue("brief", redis)

    @queue.task(name="visit", brief=True)
    async def visit(page: str) -> str:
        return _visited(page)

    return AsyncBriefTasks(queue)


def _visited(page: str) -> str:
    return f"{page} was visited"


def _page() -> str:
    return "".join(f"<li>{escape(line)}</li>\n" for line in _LINES)
