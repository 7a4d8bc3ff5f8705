"""How many are recruited after which requests, as told by the diary of a site."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from websockets.sync.client import connect

from workstealing.testing import wait_until

Serve = Callable[..., Any]

WSGI_HOSTS = {
    "wsgi": ("gunicorn", "wsgi_site"),
    "wsgi-gevent": ("gunicorn-gevent", "wsgi_site"),
    "gunicorn": ("gunicorn-hooks", "wsgi_site"),
    "gunicorn-gevent": ("gunicorn-gevent-hooks", "wsgi_site"),
    "uwsgi": ("uwsgi", "wsgi_site"),
    "flask": ("gunicorn", "flask_site"),
}
HOSTS = {
    **WSGI_HOSTS,
    "asgi": ("uvicorn", "asgi_site"),
    "starlette": ("uvicorn", "starlette_site"),
}
ALL = pytest.mark.parametrize("host", HOSTS)


@pytest.fixture
def drawn(serve: Serve) -> Callable[..., None]:
    """Serve a site, ask for pages, and count how often somebody was drawn."""

    def drawn(host: str, *paths: str, times: int, **settings: str) -> None:
        site = site_of(serve, host, **settings)
        for path in paths:
            site.get(path)
        check_drawn(site, times)

    return drawn


def site_of(serve: Serve, host: str, **settings: str) -> Any:
    server, site = HOSTS[host]
    is_ours = "no" if host.startswith("gunicorn") else "yes"
    return serve(server, site, OURS=is_ours, BY=host, **settings)


def check_drawn(site: Any, times: int) -> None:
    """Wait for those that should come, and for more until the server has stopped."""
    wait_until(lambda: count(site.diary()) >= times, 30, f"{times} to be drawn")
    assert count(site.stop()) == times


def count(diary: list[str]) -> int:
    # Busy is who was drawn while the one before was still at work.
    return sum(line in ("recruited", "busy") for line in diary)


@ALL
def test_every_request_enlists_once(host: str, drawn: Any) -> None:
    drawn(host, "/page", "/stream", "/page", times=3)


# uWSGI's own HTTP keeps no connection open.
@pytest.mark.parametrize("host", sorted(HOSTS.keys() - {"uwsgi"}))
def test_a_request_on_a_connection_that_stays_open_enlists(
    host: str, serve: Serve
) -> None:
    site = site_of(serve, host)
    with site.connect() as connection:
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: site\r\n\r\n")
        site.wait_for("recruited")


@ALL
def test_only_fine_ones_enlist_if_wanted(host: str, drawn: Any) -> None:
    not_found = "/nowhere" if host in ("flask", "starlette") else "/missing"

    drawn(host, "/page", not_found, "/stream", times=2, WHEN="fine")


@ALL
def test_only_quick_ones_enlist_if_wanted(host: str, drawn: Any) -> None:
    drawn(host, "/page", "/stream", times=0, WHEN="quick")


@ALL
def test_only_those_that_ask_enlist_if_wanted(host: str, drawn: Any) -> None:
    drawn(host, "/page", "/asks", "/stream", times=1, WHEN="asked")


@ALL
def test_a_view_can_decline(host: str, drawn: Any) -> None:
    drawn(host, "/declines", "/page", times=1)


@pytest.mark.parametrize("host", sorted(HOSTS.keys() - {"flask"}))
def test_a_view_that_raises_enlists_nobody(host: str, drawn: Any) -> None:
    drawn(host, "/fail", "/page", times=1)


def test_a_flask_view_that_raises_has_a_response_as_any_other(drawn: Any) -> None:
    drawn("flask", "/fail", times=1)


def test_a_flask_view_that_raises_is_not_fine(drawn: Any) -> None:
    drawn("flask", "/fail", times=0, WHEN="fine")


@pytest.mark.parametrize("host", sorted(HOSTS.keys() - {"uwsgi"}))
def test_a_body_that_raises_enlists_nobody(host: str, drawn: Any) -> None:
    drawn(host, "/fail-late", "/page", times=1)


@pytest.mark.parametrize("path", ["/unfinished", "/silent", "/fail-after"])
def test_an_application_that_misbehaves_is_not_fine(path: str, drawn: Any) -> None:
    drawn("asgi", path, times=0, WHEN="fine")


def test_a_file_that_the_server_sends_enlists(drawn: Any) -> None:
    drawn("wsgi", "/file", "/memory-file", times=2)
    drawn("flask", "/file", times=1)
    drawn("starlette", "/file", times=1)


@pytest.mark.parametrize(
    "host", ["wsgi", "gunicorn", "gunicorn-gevent", "flask", "starlette"]
)
def test_a_client_that_goes_away_enlists_nobody(host: str, serve: Serve) -> None:
    settings = {"WHEN": "fine"} if host == "starlette" else {}
    site = site_of(serve, host, **settings)

    site.hang_up("/endless")
    site.wait_for("closed")
    assert site.get("/page")
    check_drawn(site, 1)


def test_who_goes_on_sending_to_nobody_enlists(serve: Serve) -> None:
    site = site_of(serve, "asgi")

    site.hang_up("/long")
    site.wait_for("closed")
    check_drawn(site, 1)


@pytest.mark.parametrize("host", ["asgi", "starlette"])
def test_websockets_pass_and_enlist_nobody(host: str, serve: Serve) -> None:
    site = site_of(serve, host)

    with connect(f"ws://127.0.0.1:{site.port}/echo") as websocket:
        websocket.send("hello")
        assert websocket.recv() == "hello"
    check_drawn(site, 0)


def test_lifespan_events_pass(serve: Serve) -> None:
    site = site_of(serve, "asgi")
    site.get("/page")

    diary = site.stop()
    assert diary == ["lifespan.startup", "recruited", "lifespan.shutdown"]


def test_a_lifespan_sets_up_before_requests_and_closes_after(serve: Serve) -> None:
    site = site_of(serve, "starlette", LIFESPAN="yes")
    site.get("/page")

    diary = site.stop()
    assert diary == ["opened", "set-up", "no-time", "recruited", "left"]


def test_routes_with_the_dependency_enlist(serve: Serve) -> None:
    site = serve("uvicorn", "fastapi_site", OURS="yes")
    for path in ("/page", "/thread", "/response", "/other", "/missing", "/fail"):
        site.get(path)

    check_drawn(site, 3)


def test_the_dependency_leaves_other_background_tasks_alone(serve: Serve) -> None:
    site = serve("uvicorn", "fastapi_site", OURS="yes")
    site.get("/background")

    assert sorted(site.stop()) == ["own-task", "recruited"]


def test_workers_of_uwsgi_do_not_delay_even_an_unsized_response(
    serve: Serve, tmp_path: Any
) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = str(tmp_path / "pipe")
    site = site_of(serve, "uwsgi", JOB="hang", PIPE=pipe)

    assert site.get("/unsized").endswith(b"page")
    site.wait_for("begun")
    with open(pipe, "w"):
        pass
    site.wait_for("recruited")
