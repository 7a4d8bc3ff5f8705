"""With us, every response is byte for byte what it was without us."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing import Server, wait_until

DOCS = Path(__file__).parents[3] / "docs/integrations"
Serve = Callable[..., Any]

WSGI = [
    "/page",
    "/unsized",
    "/stream",
    "/write",
    "/file",
    "/memory-file",
    "/missing",
    "/unchanged",
    "/nothing",
    "/second-thoughts",
    "/fail",
    "/fail-late",
    "/asks",
    "/declines",
]
FLASK = [
    "/page",
    "/stream",
    "/file",
    "/nothing",
    "/nowhere",
    "/fail",
    "/fail-late",
    "/asks",
    "/declines",
]
ASGI = [
    "/page",
    "/stream",
    "/missing",
    "/unchanged",
    "/nothing",
    "/fail",
    "/fail-late",
    "/fail-after",
    "/unfinished",
    "/silent",
    "/answering",
    "/declines",
]
# It leaves a response open for ever whose application raised, or sent no end.
DAPHNE = [
    path
    for path in ASGI
    if path not in {"/fail-late", "/unfinished", "/silent", "/declines"}
]
STARLETTE = [
    "/page",
    "/stream",
    "/file",
    "/nothing",
    "/nowhere",
    "/fail",
    "/fail-late",
    "/asks",
    "/declines",
]
FASTAPI = [
    "/page",
    "/thread",
    "/response",
    "/background",
    "/other",
    "/nothing",
    "/missing",
    "/fail",
]
# Who serves it with us, without us, which site, and its pages.
HOSTS = {
    "wsgi": ("gunicorn", "gunicorn", "wsgi_site", WSGI),
    "wsgi-threads": ("gunicorn-threads", "gunicorn-threads", "wsgi_site", WSGI),
    "wsgi-waitress": ("waitress", "waitress", "wsgi_site", WSGI),
    "wsgi-cheroot": ("cheroot", "cheroot", "wsgi_site", WSGI),
    "gunicorn": ("gunicorn-hooks", "gunicorn", "wsgi_site", WSGI),
    "gunicorn-gevent": (
        "gunicorn-gevent-hooks",
        "gunicorn-gevent",
        "wsgi_site",
        WSGI,
    ),
    "wsgi-gevent": ("gunicorn-gevent", "gunicorn-gevent", "wsgi_site", WSGI),
    "wsgi-wsgiref": ("wsgiref", "wsgiref", "wsgi_site", WSGI),
    "wsgi-granian": ("granian-wsgi", "granian-wsgi", "wsgi_site", WSGI),
    "wsgi-uwsgi": ("uwsgi", "uwsgi", "wsgi_site", WSGI),
    "uwsgi": ("uwsgi", "uwsgi", "wsgi_site", WSGI),
    "flask": ("gunicorn", "gunicorn", "flask_site", FLASK),
    "asgi": ("uvicorn", "uvicorn", "asgi_site", ASGI),
    "asgi-hypercorn": ("hypercorn", "hypercorn", "asgi_site", ASGI),
    "asgi-daphne": ("daphne", "daphne", "asgi_site", DAPHNE),
    "asgi-granian": ("granian-asgi", "granian-asgi", "asgi_site", ASGI),
    "starlette": ("uvicorn", "uvicorn", "starlette_site", STARLETTE),
    "fastapi": ("uvicorn", "uvicorn", "fastapi_site", FASTAPI),
}
ALL = pytest.mark.parametrize("host", HOSTS)
# A server and a way to enlist of each kind; on the others it is left to `make slow`.
EACH_KIND = pytest.mark.parametrize(
    "host",
    [
        host
        if host in ("wsgi", "wsgi-waitress", "gunicorn", "asgi")
        else pytest.param(host, marks=pytest.mark.slow)
        for host in HOSTS
    ],
)
# Beside a worker that hangs, another one must serve.
HANGS = {"JOB": "hang", "WEB_CONCURRENCY": "2"}


@pytest.fixture
def both(
    serve: Serve, serve_plain: Serve
) -> Callable[..., tuple[Any, Any, tuple[str, ...]]]:
    """Serve a site without us and with us."""

    def both(host: str, **settings: str) -> tuple[Any, Any, tuple[str, ...]]:
        ours, theirs, site, paths = HOSTS[host]
        # gunicorn's own hooks need nothing of the site.
        is_ours = "no" if host.startswith("gunicorn") else "yes"
        without = serve_plain(theirs, site)
        with_us = serve(ours, site, OURS=is_ours, BY=host, **settings)
        return without, with_us, paths

    return both


# What the pages of the integrations call them, where they have tables of servers.
DOCUMENTED = {
    "wsgi": {
        "gunicorn": "wsgi",
        "gunicorn with threads": "wsgi-threads",
        "gunicorn with gevent": "wsgi-gevent",
        "gunicorn with gevent and [our hooks](gunicorn.md)": "gunicorn-gevent",
        "waitress": "wsgi-waitress",
        "cheroot": "wsgi-cheroot",
        "granian": "wsgi-granian",
        "uWSGI": "wsgi-uwsgi",
        "uWSGI with [its own middleware](uwsgi.md)": "uwsgi",
        "wsgiref": "wsgi-wsgiref",
    },
    "asgi": {
        "uvicorn": "asgi",
        "hypercorn": "asgi-hypercorn",
        "granian": "asgi-granian",
        "daphne": "asgi-daphne",
    },
}


# What the column of the table says, and the pages of the site that it is true of.
SIZED = {"/page", "/file", "/missing", "/asks"}
ENLISTING = {
    "every response": {*WSGI, *FLASK, *ASGI, *STARLETTE, "/large-file"} - {"/declines"},
    "bodies that end at their `Content-Length`": SIZED,
    "bodies that end at their `Content-Length`, but for files that it sends itself": (
        SIZED - {"/file"}
    ),
}
# Where an application breaks the rules, some responses have no end.
BROKEN = {
    *("/fail", "/fail-late", "/fail-after"),
    *("/unfinished", "/silent", "/answering"),
}


def documented(page: str) -> dict[str, tuple[str, int]]:
    """Return which responses enlist at each server of a table, and how many pages."""
    text = (DOCS / f"{page}.md").read_text()
    rows = re.findall(r"^\| (.+?) \|(?: (.+) \|)? (\d+) pages.*\|$", text, re.MULTILINE)
    return {name: (after or "every response", int(n)) for name, after, n in rows}


def enlisting(host: str) -> set[str]:
    """Return the pages that a host enlists after, by the docs."""
    if host == "fastapi":
        # Only the routes that have the dependency, and no errors.
        return {*FASTAPI} - {"/other", "/missing"}
    if host == "uwsgi":
        # It raises the error that it is given, before the application returns.
        return ENLISTING["every response"] - {"/second-thoughts"}
    for page, names in DOCUMENTED.items():
        for name, documented_host in names.items():
            if documented_host == host:
                return ENLISTING[documented(page)[name][0]]
    return ENLISTING["every response"]


@pytest.mark.parametrize("page", DOCUMENTED)
def test_the_docs_name_the_servers_and_pages_that_are_compared(page: str) -> None:
    assert {name: pages for name, (_, pages) in documented(page).items()} == {
        name: len(HOSTS[host][3]) for name, host in DOCUMENTED[page].items()
    }


@ALL
def test_pages_are_the_same(host: str, both: Any) -> None:
    without, with_us, paths = both(host)

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("recruited")


@EACH_KIND
def test_pages_on_one_connection_are_the_same(host: str, both: Any) -> None:
    without, with_us, paths = both(host)
    paths = (*paths[:1], *paths[:2])

    assert with_us.get(*paths) == without.get(*paths)
    assert with_us.get(paths[0], version="1.0") == without.get(paths[0], version="1.0")


@EACH_KIND
def test_pages_are_the_same_while_every_job_fails(host: str, both: Any) -> None:
    without, with_us, paths = both(host, JOB="fail")

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("error")


@EACH_KIND
def test_pages_are_the_same_while_redis_is_down(
    host: str, both: Any, tmp_path: Path
) -> None:
    without, with_us, paths = both(host, JOB="redis", REDIS=f"unix://{tmp_path}/none")

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("error")
    assert "empty" not in with_us.diary()


@EACH_KIND
def test_pages_are_the_same_while_redis_answers(
    host: str, both: Any, redis_server: Server
) -> None:
    # A busy machine must not pass for a server that does not answer.
    url = f"{redis_server.url}&socket_timeout=10"
    without, with_us, paths = both(host, JOB="redis", REDIS=url)

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("empty")
    assert "error" not in with_us.diary()


@EACH_KIND
def test_a_page_does_not_wait_for_a_job_that_hangs(
    host: str, both: Any, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    without, with_us, _ = both(host, **HANGS, PIPE=str(pipe), DEADLINE="4")
    expected = without.get("/page")

    assert with_us.get_exactly("/page", len(expected)) == expected
    with_us.wait_for("begun")
    # Another one is served meanwhile: by another worker, or on the event loop.
    assert with_us.get_exactly("/page", len(expected)) == expected
    assert not {"recruited", "error"}.intersection(with_us.diary())
    if HOSTS[host][0] in ("uvicorn", "hypercorn", "daphne", "granian-asgi"):
        with_us.wait_for("error")  # given up at the deadline
    else:
        wait_until(lambda: _all_went_on(pipe, with_us), 30, "the jobs to go on")


@ALL
def test_a_response_is_whole_before_its_slice_and_has_one_if_the_docs_say_so(
    host: str, both: Any, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = {"JOB": "held", "WEB_CONCURRENCY": "2", "DEADLINE": "60"}
    without, with_us, paths = both(host, **held, PIPE=str(pipe))
    # waitress sends it in another thread, where a slice would stop the whole site.
    large = ["/large-file"] if HOSTS[host][2] == "wsgi_site" else []
    page, slices = without.get("/page"), 0

    for path in [*paths, *large]:
        if path in BROKEN:
            continue
        expected = without.get(path)
        # Until the pipe is opened below, no slice can end.
        if _ends_with_its_connection(expected):
            assert with_us.get(path) == expected, path
        else:
            assert with_us.get_exactly(path, len(expected)) == expected, path
        if path in enlisting(host):
            slices += 1
            wait_until(lambda: _begun(with_us), 30, f"a slice after {path}")
        # It does not stop the site either.
        assert with_us.get_exactly("/page", len(page)) == page, path
        slices += 1
        wait_until(
            lambda: _all_went_on(pipe, with_us) and _ended(with_us) == slices,  # noqa: B023
            30,
            f"{slices} slices after {path}, not {with_us.diary()}",
        )
    with_us.stop()
    assert _ended(with_us) == slices


def _ends_with_its_connection(answer: bytes) -> bool:
    """Return whether nothing else tells a client that a response is complete."""
    head, _, _ = answer.lower().partition(b"\r\n\r\n")
    told = (b"\r\ncontent-length:", b"\r\ntransfer-encoding: chunked")
    is_empty = head.split(maxsplit=2)[1] in (b"204", b"304")
    return not is_empty and not any(header in head for header in told)


def _begun(site: Any) -> bool:
    """Return whether a slice is held now."""
    lines = Counter(site.diary())
    return lines["begun"] > lines["recruited"]


def _ended(site: Any) -> int:
    # Busy is who was drawn while another slice of the process was held.
    lines = Counter(site.diary())
    return lines["recruited"] + lines["busy"]


def _all_went_on(pipe: Path, site: Any) -> bool:
    """Let a job go on that has opened its end of the pipe, if there is one."""
    with suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    lines = Counter(site.diary())
    return lines["begun"] == lines["recruited"] > 0
