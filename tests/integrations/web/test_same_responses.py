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
    "wsgi-wsgiref": ("wsgiref", "wsgiref", "wsgi_site", WSGI),
    "wsgi-granian": ("granian-wsgi", "granian-wsgi", "wsgi_site", WSGI),
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
        "gunicorn with gevent and [our hooks](gunicorn.md)": "gunicorn-gevent",
        "waitress": "wsgi-waitress",
        "cheroot": "wsgi-cheroot",
        "granian": "wsgi-granian",
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


@pytest.mark.parametrize("page", DOCUMENTED)
def test_the_docs_name_the_servers_and_pages_that_are_compared(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text()
    rows = re.findall(r"^\| (.+?) \|(?:.*\|)? (\d+) pages.*\|$", text, re.MULTILINE)

    assert dict(rows) == {
        name: str(len(HOSTS[host][3])) for name, host in DOCUMENTED[page].items()
    }


@ALL
def test_pages_are_the_same(host: str, both: Any) -> None:
    without, with_us, paths = both(host)

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("recruited")


@ALL
def test_pages_on_one_connection_are_the_same(host: str, both: Any) -> None:
    without, with_us, paths = both(host)
    paths = (*paths[:1], *paths[:2])

    assert with_us.get(*paths) == without.get(*paths)
    assert with_us.get(paths[0], version="1.0") == without.get(paths[0], version="1.0")


@ALL
def test_pages_are_the_same_while_every_job_fails(host: str, both: Any) -> None:
    without, with_us, paths = both(host, JOB="fail")

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("error")


@ALL
def test_pages_are_the_same_while_redis_is_down(
    host: str, both: Any, tmp_path: Path
) -> None:
    without, with_us, paths = both(host, JOB="redis", REDIS=f"unix://{tmp_path}/none")

    for path in paths:
        assert with_us.get(path) == without.get(path), path
    with_us.wait_for("error")
    assert "empty" not in with_us.diary()


@ALL
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


@ALL
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


# gunicorn finishes a response before it closes the body. The others finish it after.
@pytest.mark.parametrize("path", ["/unchanged", "/stream", "/large-file"])
@pytest.mark.parametrize(
    "host", ["wsgi", "wsgi-waitress", "wsgi-cheroot", "wsgi-granian"]
)
def test_the_end_of_a_response_does_not_wait_for_a_job_that_hangs(
    host: str, path: str, both: Any, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    without, with_us, _ = both(host, **HANGS, PIPE=str(pipe))
    expected = without.get(path)

    assert with_us.get_exactly(path, len(expected)) == expected
    # It does not stop the site either, as it would in the thread that sends files.
    page = without.get("/page")
    assert with_us.get_exactly("/page", len(page)) == page
    with_us.wait_for("begun")
    wait_until(lambda: _all_went_on(pipe, with_us), 30, "the jobs to go on")


def _all_went_on(pipe: Path, site: Any) -> bool:
    """Let a job go on that has opened its end of the pipe, if there is one."""
    with suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    lines = Counter(site.diary())
    return lines["begun"] == lines["recruited"] > 0
