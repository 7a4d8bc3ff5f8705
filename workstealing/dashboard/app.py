"""The dashboard as an ASGI application: its paths, and what its forms do.

| path | |
|---|---|
| `/` | all queues |
| `/queue?queue=…&run=…` | one queue; `&place=dead` lists a place |
| `/task?queue=…&run=…&id=…` | one task |
| `/schedules?queue=…&run=…` | the schedules of one queue |
| `/steer` | POST: pause, resume, run or remove a schedule |
| `/act` | POST: replay, delete or cancel a task; pause or resume a queue or a name |
| `/login`, `/logout` | POST: sign in with the token; sign out |
| `/api/stat` | JSON: all queues, or one by `?queue=…&run=…` |
| `/metrics` | the same numbers for Prometheus |
| `/healthz` | "ok", without a token |

Only POST changes anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Any, TypeVar
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
from workstealing.dashboard.access_guard import AccessGuard, GuardedApp
from workstealing.dashboard.dashboard_data import (
    ACTIONS,
    SCHEDULE_ACTIONS,
    DashboardData,
    QueueSnapshot,
)
from workstealing.dashboard.gauges import gauges
from workstealing.errors import (
    BadSignature,
    ConfigurationError,
    InputEnded,
    RedisError,
    ScheduleNotFound,
    TaskNotFound,
    WorkStealingError,
)

__all__ = ("create_app",)

A = TypeVar("A", bound=str)

_ENTRIES = 100
# Each of them costs a lookup of its traceback.
_DEAD_LETTERS = 25
_LARGEST_FORM = 16_384
_ASSETS = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "login.js": "text/javascript",
}


def create_app(data: DashboardData, guard: AccessGuard) -> ASGIApp:
    """Make the application; when it ends, it closes the client of the data."""
    views = _Views(data, guard)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await data.close()

    post = ["POST"]
    app = Starlette(
        routes=[
            Route("/", views.overview),
            Route("/queue", views.queue),
            Route("/task", views.task),
            Route("/schedules", views.schedules),
            Route("/steer", views.steer, methods=post),
            Route("/act", views.act, methods=post),
            Route("/login", views.login),
            Route("/login", views.sign_in, methods=post),
            Route("/logout", views.sign_out, methods=post),
            Route("/api/stat", views.stat),
            Route("/metrics", views.metrics),
            Route("/healthz", views.health),
            Route("/assets/{name}", views.asset),
        ],
        exception_handlers={
            WorkStealingError: _error,
            HTTPException: _error,
            Exception: _error,
        },
        lifespan=lifespan,
    )
    # Around all of it, not as a middleware: also around the page of a crash.
    return GuardedApp(app, guard)


class _Views:
    """One method for each path."""

    def __init__(self, data: DashboardData, guard: AccessGuard) -> None:
        self._data = data
        self._guard = guard

    async def overview(self, _: Request) -> Response:
        seen = await self._data.overview()
        server = seen.snapshots[0].stat.server if seen.snapshots else ""
        return HTMLResponse(pages.overview_page(seen, server))

    async def queue(self, request: Request) -> Response:
        where, place = _where(request), request.query_params.get("place", "")
        snapshot = await self._data.snapshot(*where)
        if not place:
            notice = request.query_params.get("notice", "")
            return HTMLResponse(pages.queue_page(snapshot, notice))
        limit = _DEAD_LETTERS if place == "dead" else _ENTRIES
        entries = await self._data.entries(*where, place, limit)
        tracebacks = {}
        if place == "dead":
            for entry in entries:
                tracebacks[entry.id] = await self._traceback(*where, entry.id)
        notice = request.query_params.get("notice", "")
        return HTMLResponse(
            pages.place_page(snapshot, place, entries, tracebacks, notice)
        )

    async def task(self, request: Request) -> Response:
        where = _where(request)
        snapshot = await self._data.snapshot(*where)
        view, why = await self._data.task(*where, request.query_params.get("id", ""))
        notice = request.query_params.get("notice", "")
        return HTMLResponse(pages.task_page(snapshot, view, why, notice))

    async def schedules(self, request: Request) -> Response:
        where, notice = _where(request), request.query_params.get("notice", "")
        snapshot = await self._data.snapshot(*where)
        schedules = await self._data.schedules(*where)
        return HTMLResponse(pages.schedules_page(snapshot, schedules, notice))

    async def steer(self, request: Request) -> Response:
        form = await _form(request)
        _check_fields(form, {"queue", "run", "name"})
        action = _chosen(form, SCHEDULE_ACTIONS)
        where = {name: form.get(name, "") for name in ("queue", "run")}
        notice = await self._data.steer(
            action, where["queue"], where["run"], form.get("name", "")
        )
        path, named = "/schedules", {**where, "notice": notice}
        if action == "run":
            path, named = "/task", {**where, "id": notice}
        return RedirectResponse(f"{path}?{urlencode(named)}", status_code=303)

    async def act(self, request: Request) -> Response:
        form = await _form(request)
        _check_fields(form, {"queue", "run", "id", "task"})
        action = _chosen(form, ACTIONS)
        where = {name: form.get(name, "") for name in ("queue", "run", "id")}
        notice = await self._data.act(
            action, where["queue"], where["run"], where["id"], form.get("task", "")
        )
        # A deleted task no longer has a page.
        path, named = "/task", {**where, "notice": notice}
        if action == "delete":
            path, named = "/queue", {**named, "place": "dead"}
        if not where["id"]:
            path = "/queue"
        if path == "/queue":
            del named["id"]
        return RedirectResponse(f"{path}?{urlencode(named)}", status_code=303)

    async def login(self, _: Request) -> Response:
        return HTMLResponse(pages.login_page())

    async def sign_in(self, request: Request) -> Response:
        form = await _form(request)
        if not self._guard.admits(form.get("token", "")):
            page = pages.login_page("Wrong token.")
            return HTMLResponse(page, status_code=403)
        response = RedirectResponse("/", status_code=303)
        self._guard.open_session(request, response)
        return response

    async def sign_out(self, request: Request) -> Response:
        response = RedirectResponse("/login", status_code=303)
        self._guard.end_session(request, response)
        return response

    async def stat(self, request: Request) -> Response:
        if "queue" in request.query_params:
            return JSONResponse(_as_json(await self._data.snapshot(*_where(request))))
        seen = await self._data.overview()
        unreadable = [asdict(one) for one in seen.unreadable]
        queues = [_as_json(snapshot) for snapshot in seen.snapshots]
        return JSONResponse({"queues": queues, "unreadable": unreadable})

    async def metrics(self, _: Request) -> Response:
        seen = await self._data.overview()
        return PlainTextResponse(gauges([snapshot.stat for snapshot in seen.snapshots]))

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
            view, _ = await self._data.task(name, run, task_id)
        except WorkStealingError:
            # It has been replayed, or a foreign writer gave it an invalid id.
            return ""
        return view.traceback


def _check_fields(form: dict[str, str], known: set[str]) -> None:
    """Refuse a form of another path: without its field, it would do something else."""
    unknown = sorted(form.keys() - known - {"action"})
    if unknown:
        raise ConfigurationError(
            f"unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )


def _chosen(form: dict[str, str], actions: tuple[A, ...]) -> A:
    for action in actions:
        if action == form.get("action"):
            return action
    raise ConfigurationError(
        f"action must be one of {', '.join(actions)}, got {form.get('action', '')!r}"
    )


async def _error(request: Request, error: Exception) -> Response:
    title, code, problem = "Something went wrong", 500, "See the log of the dashboard."
    if isinstance(error, HTTPException):
        title, code, problem = error.detail, error.status_code, "Nothing was changed."
    elif isinstance(error, TaskNotFound):
        title, code, problem = "No such task", 404, str(error)
    elif isinstance(error, ScheduleNotFound):
        title, code, problem = "No such schedule", 404, str(error)
    elif isinstance(error, BadSignature | InputEnded):
        title, code, problem = "It cannot be run here", 409, str(error)
    elif isinstance(error, ConfigurationError):
        title, code, problem = "Bad request", 400, str(error)
    elif isinstance(error, RedisError):
        title, code, problem = "Redis is unavailable", 503, str(error)
    if request.scope["path"].startswith("/api/"):
        return JSONResponse({"error": problem}, status_code=code)
    return HTMLResponse(pages.error_page(title, problem), status_code=code)


def _where(request: Request) -> tuple[str, str]:
    query = request.query_params
    return query.get("queue", ""), query.get("run", "default")


def _as_json(snapshot: QueueSnapshot) -> dict[str, Any]:
    rates = None if snapshot.rates is None else asdict(snapshot.rates)
    return {**asdict(snapshot.stat), "rates": rates}


async def _form(request: Request) -> dict[str, str]:
    """Read a form; refuse a body that is larger than any form of the dashboard."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise HTTPException(413)
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
