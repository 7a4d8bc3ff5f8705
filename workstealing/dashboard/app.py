"""The dashboard as an ASGI application: which path shows what, and what a form does.

| path | |
|---|---|
| `/` | all queues |
| `/queue?queue=…&run=…` | one of them; `&place=dead` lists a place |
| `/task?queue=…&run=…&id=…` | one task |
| `/act` | POST: replay, delete or cancel a task |
| `/login`, `/logout` | POST: show the token; forget the browser |
| `/api/stat` | JSON: all queues, or one by `?queue=…&run=…` |
| `/metrics` | the same numbers as Prometheus reads them |
| `/healthz` | "ok", for all |

Only POST changes anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from workstealing.dashboard import pages
from workstealing.dashboard.board import ACTIONS, Board, Look
from workstealing.dashboard.gauges import gauges
from workstealing.dashboard.guarding import Guard, Guarded
from workstealing.errors import (
    ConfigurationError,
    RedisError,
    TaskNotFound,
    WorkStealingError,
)

__all__ = ("create_app",)

_ENTRIES = 100
# Each is looked up with its traceback.
_DEAD_LETTERS = 25
_LARGEST_FORM = 16_384
_ASSETS = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "login.js": "text/javascript",
}


def create_app(board: Board, guard: Guard) -> ASGIApp:
    """Make the application; it closes the board when it ends."""
    views = _Views(board, guard)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await board.close()

    post = ["POST"]
    app = Starlette(
        routes=[
            Route("/", views.overview),
            Route("/queue", views.queue),
            Route("/task", views.task),
            Route("/act", views.act, methods=post),
            Route("/login", views.login),
            Route("/login", views.come_in, methods=post),
            Route("/logout", views.leave, methods=post),
            Route("/api/stat", views.stat),
            Route("/metrics", views.metrics),
            Route("/healthz", views.health),
            Route("/assets/{name}", views.asset),
        ],
        exception_handlers={
            WorkStealingError: _trouble,
            HTTPException: _trouble,
            Exception: _trouble,
        },
        lifespan=lifespan,
    )
    # Around all of it, and no middleware: also around what is said of a crash.
    return Guarded(app, guard)


class _Views:
    """One method for each path."""

    def __init__(self, board: Board, guard: Guard) -> None:
        self._board = board
        self._guard = guard

    async def overview(self, _: Request) -> Response:
        seen = await self._board.overview()
        server = seen.looks[0].stat.server if seen.looks else ""
        return HTMLResponse(pages.overview_page(seen, server))

    async def queue(self, request: Request) -> Response:
        where, place = _where(request), request.query_params.get("place", "")
        look = await self._board.look(*where)
        if not place:
            return HTMLResponse(pages.queue_page(look))
        limit = _DEAD_LETTERS if place == "dead" else _ENTRIES
        entries = await self._board.entries(*where, place, limit)
        tracebacks = {}
        if place == "dead":
            for entry in entries:
                tracebacks[entry.id] = await self._traceback(*where, entry.id)
        told = request.query_params.get("told", "")
        return HTMLResponse(pages.place_page(look, place, entries, tracebacks, told))

    async def task(self, request: Request) -> Response:
        where = _where(request)
        look = await self._board.look(*where)
        view, why = await self._board.task(*where, request.query_params.get("id", ""))
        told = request.query_params.get("told", "")
        return HTMLResponse(pages.task_page(look, view, why, told))

    async def act(self, request: Request) -> Response:
        form = await _form(request)
        action = next((one for one in ACTIONS if one == form.get("action")), None)
        if action is None:
            raise ConfigurationError(f"the action must be one of {', '.join(ACTIONS)}")
        where = {name: form.get(name, "") for name in ("queue", "run", "id")}
        told = await self._board.act(action, where["queue"], where["run"], where["id"])
        # What was deleted has no page any more.
        path, named = "/task", {**where, "told": told}
        if action == "delete":
            path, named = "/queue", {**named, "place": "dead"}
            del named["id"]
        return RedirectResponse(f"{path}?{urlencode(named)}", status_code=303)

    async def login(self, _: Request) -> Response:
        return HTMLResponse(pages.login_page())

    async def come_in(self, request: Request) -> Response:
        form = await _form(request)
        if not self._guard.admits(form.get("token", "")):
            page = pages.login_page("This is not the token.")
            return HTMLResponse(page, status_code=403)
        response = RedirectResponse("/", status_code=303)
        self._guard.open_session(request, response)
        return response

    async def leave(self, request: Request) -> Response:
        response = RedirectResponse("/login", status_code=303)
        self._guard.end_session(request, response)
        return response

    async def stat(self, request: Request) -> Response:
        if "queue" in request.query_params:
            return JSONResponse(_told(await self._board.look(*_where(request))))
        seen = await self._board.overview()
        unreadable = [asdict(one) for one in seen.unreadable]
        queues = [_told(look) for look in seen.looks]
        return JSONResponse({"queues": queues, "unreadable": unreadable})

    async def metrics(self, _: Request) -> Response:
        seen = await self._board.overview()
        return PlainTextResponse(gauges([look.stat for look in seen.looks]))

    async def health(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise HTTPException(404)
        found = files("workstealing.dashboard") / "assets" / name
        return Response(found.read_bytes(), media_type=_ASSETS[name])

    async def _traceback(self, name: str, run: str, task_id: str) -> str:
        try:
            view, _ = await self._board.task(name, run, task_id)
        except WorkStealingError:
            # It was replayed, or came from elsewhere under an id that is none.
            return ""
        return view.traceback


async def _trouble(request: Request, error: Exception) -> Response:
    title, code, told = "Something went wrong", 500, "See the log of the dashboard."
    if isinstance(error, HTTPException):
        title, code, told = error.detail, error.status_code, "Nothing was done."
    elif isinstance(error, TaskNotFound):
        title, code, told = "No such task", 404, str(error)
    elif isinstance(error, ConfigurationError):
        title, code, told = "This cannot be meant", 400, str(error)
    elif isinstance(error, RedisError):
        title, code, told = "Redis does not answer as it should", 503, str(error)
    if request.scope["path"].startswith("/api/"):
        return JSONResponse({"error": told}, status_code=code)
    return HTMLResponse(pages.trouble_page(title, told), status_code=code)


def _where(request: Request) -> tuple[str, str]:
    query = request.query_params
    return query.get("queue", ""), query.get("run", "default")


def _told(look: Look) -> dict[str, Any]:
    rates = None if look.rates is None else asdict(look.rates)
    return {**asdict(look.stat), "rates": rates}


async def _form(request: Request) -> dict[str, str]:
    """Read a small form; a larger body is nobody's of ours."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise HTTPException(413)
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
