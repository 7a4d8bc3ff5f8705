"""The dashboard as an ASGI application: its paths, and what its forms do.

| path | |
|---|---|
| `/` | all queues |
| `/queue?queue=…&run=…` | one queue |
| `/tasks?queue=…&run=…&state=dead` | tasks by state, name, worker, error, id, age |
| `/task?queue=…&run=…&id=…` | one task |
| `/schedules?queue=…&run=…` | the schedules and limits of one queue |
| `/workers`, `/workers?queue=…&run=…` | some workers of all queues; all of one |
| `/worker?queue=…&run=…&name=…` | one worker |
| `/side-work` | the side work of the fleet |
| `/search?id=…` | in which queue a task is |
| `/acts` | what was done from here |
| `/steer` | POST: pause, resume, run or remove a schedule |
| `/act` | POST: replay, delete or cancel a task; pause a queue, end its input |
| `/bulk` | POST: replay, delete or cancel ticked tasks, or all that match |
| `/login`, `/logout` | POST: sign in with the token; sign out |
| `/api/stat` | JSON: all queues, or one by `?queue=…&run=…` |
| `/metrics` | the same numbers for Prometheus |
| `/healthz` | "ok", without a token |

Only POST changes anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from importlib.resources import files
from typing import Any

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

from workstealing.dashboard.access_guard import (
    MAY_ACT,
    AccessGuard,
    Guard,
    GuardedApp,
    own_path,
)
from workstealing.dashboard.act_log import ActLog
from workstealing.dashboard.bulk_acts import BULK_ACTIONS
from workstealing.dashboard.dashboard_data import (
    ACTIONS,
    SCHEDULE_ACTIONS,
    DashboardData,
    QueueSnapshot,
)
from workstealing.dashboard.gauges import gauges
from workstealing.dashboard.home_page import (
    acts_page,
    error_page,
    home_page,
    login_page,
    search_page,
)
from workstealing.dashboard.layout import Reader
from workstealing.dashboard.markup import address
from workstealing.dashboard.queue_chart import chosen_span
from workstealing.dashboard.queue_page import queue_page
from workstealing.dashboard.request_forms import (
    FILTERS,
    check_fields,
    chosen_action,
    filter_of,
    read_fields,
    read_form,
)
from workstealing.dashboard.schedules_page import schedules_page
from workstealing.dashboard.side_work_gauges import side_work_gauges
from workstealing.dashboard.side_work_page import side_work_page
from workstealing.dashboard.site_guard import SITE_ACCESS
from workstealing.dashboard.task_page import task_page
from workstealing.dashboard.tasks_page import (
    Listing,
    confirmation_page,
    filter_fields,
    tasks_in,
    tasks_page,
)
from workstealing.dashboard.worker_pages import (
    OVERVIEW_WORKERS,
    PAGE_WORKERS,
    QUEUE_WORKERS,
    queue_workers_page,
    worker_page,
    workers_page,
)
from workstealing.errors import (
    BadSignature,
    ConfigurationError,
    InputEnded,
    RedisError,
    ScheduleNotFound,
    TaskNotFound,
    UnknownWorker,
    WorkStealingError,
)
from workstealing.inspecting import TaskFilter
from workstealing.inspecting.formatting import plural

__all__ = ("create_app",)

_ROWS = 50
_ASSETS = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "login.js": "text/javascript",
}


def create_app(data: DashboardData, guard: Guard) -> ASGIApp:
    """Make the application; when it ends, it closes the client of the data."""
    views = _Views(data)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await data.close()

    post = ["POST"]
    app = Starlette(
        routes=[
            Route("/", views.overview),
            Route("/queue", views.queue),
            Route("/tasks", views.tasks),
            Route("/task", views.task),
            Route("/schedules", views.schedules),
            Route("/workers", views.workers),
            Route("/worker", views.worker),
            Route("/side-work", views.side_work),
            Route("/search", views.search),
            Route("/acts", views.acts),
            Route("/bulk", views.bulk, methods=post),
            Route("/steer", views.steer, methods=post),
            Route("/act", views.act, methods=post),
            *(_sign_in_routes(guard) if isinstance(guard, AccessGuard) else ()),
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


def _sign_in_routes(guard: AccessGuard) -> list[Route]:
    """Return the paths of a dashboard that has a login of its own."""

    async def login(_: Request) -> Response:
        return HTMLResponse(login_page())

    async def sign_in(request: Request) -> Response:
        form = await read_form(request)
        token = form.get("token", "")
        if not guard.admits(token):
            return HTMLResponse(login_page("Wrong token."), status_code=403)
        response = RedirectResponse(address("/"), status_code=303)
        guard.open_session(request, response, token)
        return response

    async def sign_out(request: Request) -> Response:
        response = RedirectResponse(address("/login"), status_code=303)
        guard.end_session(request, response)
        return response

    return [
        Route("/login", login),
        Route("/login", sign_in, methods=["POST"]),
        Route("/logout", sign_out, methods=["POST"]),
    ]


class _Views:
    """One method for each path."""

    def __init__(self, data: DashboardData) -> None:
        self._data = data
        self._log = ActLog()

    async def overview(self, request: Request) -> Response:
        seen = await self._data.overview()
        return HTMLResponse(home_page(seen, _reader(request)))

    async def queue(self, request: Request) -> Response:
        snapshot = await self._data.snapshot(*_where(request), workers=QUEUE_WORKERS)
        span = chosen_span(request.query_params.get("span", ""))
        history = await self._data.history(snapshot.stat, span)
        events = await self._data.events(*_where(request))
        page = queue_page(snapshot, history, events, span, _reader(request))
        return HTMLResponse(page)

    async def tasks(self, request: Request) -> Response:
        where, query = _where(request), dict(request.query_params)
        wanted, after = filter_of(query), query.get("after", "")
        stat, page = await self._data.tasks(*where, wanted, after, _ROWS)
        groups = due = None
        if wanted.state in ("dead", "delayed") and wanted.is_any and not after:
            groups = await self._data.error_groups(*where, wanted.state)
        if wanted.state == "delayed" and page.total and not after:
            due = await self._data.due_times(stat)
        listing = Listing(stat, wanted, page, groups, due)
        return HTMLResponse(tasks_page(listing, _reader(request)))

    async def task(self, request: Request) -> Response:
        task_id = request.query_params.get("id", "")
        view = await self._data.task(*_where(request), task_id)
        return HTMLResponse(task_page(view, _reader(request)))

    async def schedules(self, request: Request) -> Response:
        where = _where(request)
        snapshot = await self._data.snapshot(*where)
        schedules = await self._data.schedules(*where)
        limits = await self._data.limits(*where)
        page = schedules_page(snapshot, schedules, limits, _reader(request))
        return HTMLResponse(page)

    async def workers(self, request: Request) -> Response:
        if "queue" not in request.query_params:
            seen = await self._data.overview(OVERVIEW_WORKERS)
            return HTMLResponse(workers_page(seen, _reader(request)))
        first = request.query_params.get("first", "")
        # One more than is shown is the first one of the next page.
        snapshot = await self._data.snapshot(*_where(request), PAGE_WORKERS + 1, first)
        return HTMLResponse(queue_workers_page(snapshot.stat, first, _reader(request)))

    async def worker(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        view = await self._data.worker(*_where(request), name)
        return HTMLResponse(worker_page(view, _reader(request)))

    async def side_work(self, request: Request) -> Response:
        seen = await self._data.side_work()
        return HTMLResponse(side_work_page(seen, _reader(request)))

    async def search(self, request: Request) -> Response:
        task_id = request.query_params.get("id", "").strip()
        found = await self._data.find(task_id) if task_id else []
        if len(found) == 1:
            only = found[0]
            named = {"queue": only.queue, "run": only.run, "id": only.id}
            return RedirectResponse(address("/task", **named), status_code=303)
        return HTMLResponse(search_page(task_id, found, _reader(request)))

    async def acts(self, request: Request) -> Response:
        return HTMLResponse(acts_page(self._log.acts(), _reader(request)))

    async def steer(self, request: Request) -> Response:
        form = await read_form(request)
        check_fields(form, {"queue", "run", "name"})
        action = chosen_action(form, SCHEDULE_ACTIONS)
        where = {name: form.get(name, "") for name in ("queue", "run")}
        name = form.get("name", "")
        notice = await self._data.steer(action, where["queue"], where["run"], name)
        self._note(request, f"{action} schedule", where, name, notice)
        path, named = "/schedules", {**where, "notice": notice}
        if action == "run":
            path, named = "/task", {**where, "id": notice}
        return RedirectResponse(address(path, **named), status_code=303)

    async def act(self, request: Request) -> Response:
        form = await read_form(request)
        check_fields(form, {"queue", "run", "id", "task"})
        action = chosen_action(form, ACTIONS)
        where = {name: form.get(name, "") for name in ("queue", "run", "id")}
        task = form.get("task", "")
        notice = await self._data.act(
            action, where["queue"], where["run"], where["id"], task
        )
        self._note(request, action, where, where["id"] or task, notice)
        # A deleted task no longer has a page.
        path, named = "/task", {**where, "notice": notice}
        if action == "delete":
            path, named = "/tasks", {**named, "state": "dead"}
        elif not where["id"]:
            path = "/queue"
        if path != "/task":
            del named["id"]
        return RedirectResponse(address(path, **named), status_code=303)

    async def bulk(self, request: Request) -> Response:
        fields = await read_fields(request)
        form = dict(fields)
        check_fields(form, {"queue", "run", "id", "confirmed", *FILTERS})
        where = {name: form.get(name, "") for name in ("queue", "run")}
        wanted = filter_of(form)
        known = BULK_ACTIONS.get(wanted.state, ())
        chosen_action(form, (*known, *(f"{one}-all" for one in known)))
        action = next(one for one in known if form["action"].startswith(one))
        is_every = form["action"].endswith("-all")
        ids = [value for name, value in fields if name == "id"] if not is_every else []
        named = {**where, **filter_fields(wanted)}
        if not is_every and not ids:
            return _see_tasks({**named, "notice": "none-ticked"})
        is_sure = form.get("confirmed") == "yes"
        if not is_sure and (is_every or action == "delete"):
            at = (where["queue"], where["run"])
            stat = (await self._data.snapshot(*at)).stat
            about = plural(len(ids), "ticked task")
            if is_every:
                about = _about(wanted, await self._data.count(*at, wanted))
            reader = _reader(request)
            page = confirmation_page(stat, action, wanted, ids, about, reader)
            return HTMLResponse(page)
        more = False
        if is_every:
            ids, more = await self._data.matching(where["queue"], where["run"], wanted)
        done = await self._data.change(action, where["queue"], where["run"], ids)
        subject = plural(len(ids), "task")
        self._note(request, action, where, subject, f"{done.changed:,} changed")
        counts = {
            "changed": done.changed,
            "matched": done.matched,
            "asked": done.asked,
            "more": int(more),
        }
        told = {name: str(count) for name, count in counts.items()}
        # The filter of a group would show an empty list.
        return _see_tasks({**named, "group": "", "notice": action, **told})

    async def stat(self, request: Request) -> Response:
        if "queue" in request.query_params:
            snapshot = await self._data.snapshot(*_where(request), workers=None)
            return JSONResponse(_as_json(snapshot))
        seen = await self._data.overview(workers=None)
        unreadable = [asdict(one) for one in seen.unreadable]
        queues = [_as_json(snapshot) for snapshot in seen.snapshots]
        return JSONResponse({"queues": queues, "unreadable": unreadable})

    async def metrics(self, _: Request) -> Response:
        seen = await self._data.overview()
        # An autoscaler must not take a part of the backlog for all of it.
        stats = [one.stat for one in seen.snapshots if not one.stat.unreachable]
        text = gauges(stats, await self._data.lately(stats))
        # The ledger has a key of its own: its node may be away.
        with suppress(RedisError):
            text += side_work_gauges(await self._data.side_work())
        return PlainTextResponse(text)

    async def health(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise HTTPException(404)
        found = files("workstealing.dashboard") / "assets" / name
        return Response(found.read_bytes(), media_type=_ASSETS[name])

    def _note(
        self,
        request: Request,
        action: str,
        where: dict[str, str],
        subject: str,
        result: str,
    ) -> None:
        who = request.client.host if request.client else "?"
        self._log.note(who, action, where["queue"], where["run"], subject, result)


def _reader(request: Request) -> Reader:
    return Reader(
        bool(request.scope.get(MAY_ACT)),
        dict(request.query_params),
        has_session=SITE_ACCESS not in request.scope,
        sent_form=request.method == "POST",
    )


def _about(wanted: TaskFilter, counted: tuple[int, bool]) -> str:
    """Say how many tasks match, as far as they were counted."""
    number, is_all = counted
    tasks = f"{number:,} {tasks_in(wanted.state, number)}"
    if wanted.is_any:
        return f"all {tasks}"
    return tasks if is_all else f"at least {tasks}"


def _see_tasks(named: dict[str, str]) -> Response:
    return RedirectResponse(address("/tasks", **named), status_code=303)


_ERRORS: tuple[tuple[type[WorkStealingError], str, int], ...] = (
    (TaskNotFound, "No such task", 404),
    (ScheduleNotFound, "No such schedule", 404),
    (UnknownWorker, "No such worker", 404),
    (BadSignature, "It cannot be run here", 409),
    (InputEnded, "It cannot be run here", 409),
    (ConfigurationError, "Bad request", 400),
    (RedisError, "Redis is unavailable", 503),
)
"""What errors mean to a reader; a class before those that it is derived from."""


async def _error(request: Request, error: Exception) -> Response:
    title, code, problem = "Something went wrong", 500, "See the log of the dashboard."
    if isinstance(error, HTTPException):
        title, code = error.detail, error.status_code
        problem = "There is no such page." if code == 404 else "Nothing was changed."
    else:
        for kind, its_title, its_code in _ERRORS:
            if isinstance(error, kind):
                title, code, problem = its_title, its_code, str(error)
                break
    if own_path(request.scope).startswith("/api/"):
        return JSONResponse({"error": problem}, status_code=code)
    page = error_page(title, problem, _reader(request), code)
    return HTMLResponse(page, status_code=code)


def _where(request: Request) -> tuple[str, str]:
    query = request.query_params
    return query.get("queue", ""), query.get("run", "default")


def _as_json(snapshot: QueueSnapshot) -> dict[str, Any]:
    rates = None if snapshot.rates is None else asdict(snapshot.rates)
    return {**asdict(snapshot.stat), "rates": rates}
