"""The dashboard inside real sites: under a path, behind their own login."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import sys
import threading
import types
from typing import Any
from urllib.parse import urlencode

import django
import flask
import httpx
import pytest
from django.conf import settings
from fastapi import FastAPI
from redis import Redis
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from workstealing import TaskQueue
from workstealing.dashboard import (
    asgi_dashboard,
    django_dashboard,
    flask_dashboard,
    mounting,
    wsgi_dashboard,
)
from workstealing.errors import ConfigurationError
from workstealing.testing import Server

HOST = "http://site.example"
ROLES = {"boss": True, "guest": "read-only"}


def role_of(name: str | None) -> bool | str | None:
    return ROLES.get(name or "")


def starlette_site(url: str) -> Any:
    async def login(request: Request) -> PlainTextResponse:
        request.session["name"] = request.query_params["name"]
        return PlainTextResponse("hello")

    async def allow(request: Request) -> bool | str | None:
        return role_of(request.session.get("name"))

    return Starlette(
        routes=[
            Route("/login", login),
            Mount("/ops/queues", asgi_dashboard(url, allow=allow)),
        ],
        middleware=[Middleware(SessionMiddleware, secret_key="x" * 32)],
    )


def fastapi_site(url: str) -> Any:
    app = FastAPI()
    app.add_middleware(SessionMiddleware, secret_key="x" * 32)

    @app.get("/login")
    def login(request: Request, name: str) -> str:
        request.session["name"] = name
        return "hello"

    app.mount(
        "/ops/queues",
        asgi_dashboard(url, allow=lambda one: role_of(one.session.get("name"))),
    )
    return app


def flask_site(url: str) -> Any:
    app = flask.Flask("site")
    app.secret_key = "x" * 32

    @app.get("/login")
    def login() -> str:
        flask.session["name"] = flask.request.args["name"]
        return "hello"

    app.register_blueprint(
        flask_dashboard(url, allow=lambda: role_of(flask.session.get("name"))),
        url_prefix="/ops/queues",
    )
    return app


def wsgi_site(url: str) -> Any:
    app = flask.Flask("site")

    @app.get("/login")
    def login() -> flask.Response:
        answer = flask.make_response("hello")
        answer.set_cookie("name", flask.request.args["name"])
        return answer

    def allow(environ: dict[str, Any]) -> bool | str | None:
        return role_of(environ.get("HTTP_COOKIE", "").removeprefix("name="))

    mounted = {"/ops/queues": wsgi_dashboard(url, allow=allow)}
    return DispatcherMiddleware(app.wsgi_app, mounted)


def django_site(url: str) -> Any:
    if not settings.configured:
        settings.configure(
            SECRET_KEY="x" * 32,
            ALLOWED_HOSTS=["*"],
            ROOT_URLCONF="workstealing_dashboard_urls",
            MIDDLEWARE=[
                "django.contrib.sessions.middleware.SessionMiddleware",
                "django.middleware.common.CommonMiddleware",
                "django.middleware.csrf.CsrfViewMiddleware",
            ],
            INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
            SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        )
        django.setup()
    from django.http import HttpRequest, HttpResponse
    from django.urls import clear_url_caches, include, path

    def login(request: HttpRequest) -> HttpResponse:
        request.session["name"] = request.GET["name"]
        return HttpResponse("hello")

    def allow(request: HttpRequest) -> bool | str | None:
        return role_of(request.session.get("name"))

    urls = types.ModuleType("workstealing_dashboard_urls")
    urls.__dict__["urlpatterns"] = [
        path("login", login),
        path("ops/queues/", include(django_dashboard(url, allow=allow))),
    ]
    sys.modules[urls.__name__] = urls
    clear_url_caches()
    return importlib.import_module("django.core.wsgi").get_wsgi_application()


SITES = {
    "starlette": starlette_site,
    "fastapi": fastapi_site,
    "flask": flask_site,
    "wsgi": wsgi_site,
    "django": django_site,
}
# A site keeps its connections until its process ends, and so does one of these. Those
# of asyncio belong to the loop of one test; the others have a loop of their own.
_ASGI = ("starlette", "fastapi")
_SITES: dict[tuple[str, str], Any] = {}


@pytest.fixture(params=SITES)
async def visit(request: pytest.FixtureRequest, redis_server: Server) -> Any:
    """Visit a path of a site as somebody, or as nobody."""
    is_asgi = request.param in _ASGI
    key = (request.param, request.node.name if is_asgi else "")
    site = _SITES.get(key) or SITES[request.param](redis_server.url)
    _SITES[key] = site

    async def visit(
        method: str, path: str, name: str = "", **more: Any
    ) -> httpx.Response:
        if is_asgi:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(site), base_url=HOST
            ) as client:
                if name:
                    await client.get("/login", params={"name": name})
                return await client.request(method, path, **more)
        with httpx.Client(transport=httpx.WSGITransport(site), base_url=HOST) as plain:
            if name:
                plain.get("/login", params={"name": name})
            return plain.request(method, path, **more)

    return visit


@pytest.fixture
def queue(redis_client: Redis, key_prefix: str) -> TaskQueue:
    queue = TaskQueue(key_prefix, redis_client)

    @queue.task(name="work")
    def work() -> None: ...

    work.options(id="one").submit()
    return queue


async def test_nobody_sees_anything_that_the_site_does_not_allow(visit: Any) -> None:
    for path in ("/", "/queue?queue=x", "/api/stat", "/metrics", "/side-work"):
        answer = await visit("GET", f"/ops/queues{path}")
        assert answer.status_code == 403, path
        assert "sign in" in answer.text


async def test_links_forms_and_files_are_below_the_path(
    visit: Any, queue: TaskQueue
) -> None:
    where = urlencode({"queue": queue.name, "run": "default"})
    for path in ("/", f"/queue?{where}", f"/tasks?{where}", f"/task?{where}&id=one"):
        page = await visit("GET", f"/ops/queues{path}", "boss")
        assert page.status_code == 200, page.text
        for part in ('href="/', 'action="/', 'src="/'):
            assert page.text.count(part) == page.text.count(f"{part}ops/queues/")
        assert "/ops/queues/assets/style.css" in page.text
        assert "Sign out" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
    style = await visit("GET", "/ops/queues/assets/style.css", "boss")
    assert style.headers["content-type"].startswith("text/css")
    assert (await visit("GET", "/ops/queues/login", "boss")).status_code == 404


async def test_an_act_leads_back_to_a_page_below_the_path(
    visit: Any, queue: TaskQueue
) -> None:
    form = {"action": "cancel", "queue": queue.name, "run": "default", "id": "one"}
    headers = {"Origin": HOST}
    answer = await visit("POST", "/ops/queues/act", "boss", data=form, headers=headers)

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/ops/queues/task?")
    assert "notice=cancelled" in answer.headers["location"]
    assert queue.handle("one").state().state == "cancelled"


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("boss", {"Origin": "http://evil.example"}),
        ("boss", {"Origin": "null"}),
        ("boss", {"Sec-Fetch-Site": "same-site"}),
        ("boss", {}),
        ("guest", {"Origin": HOST}),
        ("", {"Origin": HOST}),
    ],
)
async def test_a_forged_act_or_one_of_a_guest_changes_nothing(
    visit: Any, queue: TaskQueue, name: str, headers: dict[str, str]
) -> None:
    form = {"action": "cancel", "queue": queue.name, "run": "default", "id": "one"}
    answer = await visit("POST", "/ops/queues/act", name, data=form, headers=headers)

    assert answer.status_code == 403
    assert queue.handle("one").state().state == "waiting"


async def test_a_guest_sees_no_buttons(visit: Any, queue: TaskQueue) -> None:
    where = urlencode({"queue": queue.name, "run": "default"})
    page = await visit("GET", f"/ops/queues/queue?{where}", "guest")

    assert page.status_code == 200
    assert "<button" not in page.text
    assert "read-only" in page.text


async def test_a_site_behind_a_proxy_that_changes_the_host_can_act(
    visit: Any, queue: TaskQueue
) -> None:
    form = {"action": "cancel", "queue": queue.name, "run": "default", "id": "one"}
    headers = {"Origin": "https://public.example", "Sec-Fetch-Site": "same-origin"}
    answer = await visit("POST", "/ops/queues/act", "boss", data=form, headers=headers)

    assert answer.status_code == 303


async def test_the_path_without_its_slash_leads_to_the_first_page(visit: Any) -> None:
    answer = await visit("GET", "/ops/queues", "boss")

    assert answer.status_code in (301, 302, 307, 308)
    assert httpx.URL(answer.headers["location"]).path == "/ops/queues/"


async def test_an_error_page_stays_below_the_path(visit: Any) -> None:
    answer = await visit("GET", "/ops/queues/assets/nothing", "boss")

    assert answer.status_code == 404
    assert 'href="/ops/queues/"' in answer.text


@pytest.mark.parametrize("make", [asgi_dashboard, wsgi_dashboard, flask_dashboard])
def test_what_is_no_function_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError, match="allow must be a function"):
        make("redis://localhost", allow=True)


def test_a_page_that_hangs_is_given_up_and_does_not_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, ended = threading.Event(), threading.Event()
    original = asyncio.run_coroutine_threadsafe

    def begun(*arguments: Any) -> Any:
        future = original(*arguments)
        assert began.wait(30)
        return future

    async def hang(*_: Any) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(mounting, "_site_app", lambda *_: hang)
    monkeypatch.setattr(mounting, "_LONGEST_SECONDS", 0)
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", begun)
    thread = mounting.DashboardThread(None, ())

    with pytest.raises(concurrent.futures.TimeoutError):
        thread.page({"REQUEST_METHOD": "GET"}, "", "/", "full")

    assert ended.wait(30)


async def test_an_answer_that_says_nothing_is_an_error_and_no_way_in() -> None:
    dashboard = asgi_dashboard("redis://localhost", allow=lambda _: "admin")
    transport = httpx.ASGITransport(dashboard)
    async with httpx.AsyncClient(transport=transport, base_url=HOST) as client:
        with pytest.raises(ConfigurationError, match="must return True or 'full'"):
            await client.get("/")
