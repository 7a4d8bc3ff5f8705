"""With us, every response is byte for byte what it was without us."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing import Server, wait_until

Serve = Callable[..., Any]

PATHS = [
    "page",
    "awaited",
    "stream",
    "awaited_stream",
    "file",
    "gone",
    "unchanged",
    "nothing",
    "fail",
    "fail_late",
    "asks",
    "declines",
    "kept",
    "kept",
    "hit",
    "awaited_hit",
    "nowhere",
]
SERVERS = pytest.mark.parametrize("server", ["gunicorn", "uvicorn"])


def assert_the_same(without: Any, with_us: Any) -> None:
    for path in PATHS:
        assert with_us.get(path) == without.get(path), path


@SERVERS
def test_pages_are_the_same(server: str, serve: Serve, serve_plain: Serve) -> None:
    without, with_us = serve_plain(server), serve(server)

    assert_the_same(without, with_us)
    assert "recruited" in with_us.stop(), with_us.output()


@SERVERS
def test_pages_on_one_connection_are_the_same(
    server: str, serve: Serve, serve_plain: Serve
) -> None:
    without, with_us = serve_plain(server), serve(server)

    paths = ["page", "stream", "page"]
    assert with_us.get(*paths) == without.get(*paths)
    assert with_us.get("page", version="1.0") == without.get("page", version="1.0")


@SERVERS
def test_pages_are_the_same_while_every_job_fails(
    server: str, serve: Serve, serve_plain: Serve
) -> None:
    without, with_us = serve_plain(server), serve(server, JOB="fail")

    assert_the_same(without, with_us)
    assert "error" in with_us.stop()


@SERVERS
def test_pages_are_the_same_while_redis_is_down(
    server: str, serve: Serve, serve_plain: Serve, tmp_path: Path
) -> None:
    without = serve_plain(server)
    with_us = serve(server, JOB="redis", REDIS=f"unix://{tmp_path}/none")

    assert_the_same(without, with_us)
    diary = with_us.stop()
    assert "error" in diary
    assert "recruited" not in diary


@SERVERS
def test_pages_are_the_same_while_redis_answers(
    server: str, serve: Serve, serve_plain: Serve, redis_server: Server
) -> None:
    without = serve_plain(server)
    # A busy machine must not pass for a server that does not answer.
    url = f"{redis_server.url}&socket_timeout=10"
    with_us = serve(server, JOB="redis", REDIS=url)

    assert_the_same(without, with_us)
    diary = with_us.stop()
    assert "empty" in diary
    assert "error" not in diary


@SERVERS
def test_pages_are_the_same_with_all_pages_in_a_cache(
    server: str, serve: Serve
) -> None:
    caching = (
        '{"MIDDLEWARE": ["django.middleware.cache.UpdateCacheMiddleware", %s'
        '"django.middleware.cache.FetchFromCacheMiddleware"]}'
    )
    ours = '"workstealing.integrations.django.DjangoEnlistMiddleware", '
    without = serve(server, OURS="no", SETTINGS=caching % "")
    # Behind the cache middleware it is in the wrong place, and must do no harm.
    with_us = serve(server, SETTINGS=caching % ours)

    for path in ("page", "page", "page", "page"):
        assert with_us.get(path) == without.get(path)
    assert "recruited" in with_us.stop()


@SERVERS
def test_a_page_does_not_wait_for_a_job_that_hangs(
    server: str, serve: Serve, serve_plain: Serve, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    without = serve_plain(server)
    with_us = serve(server, JOB="hang", PIPE=str(pipe), WEB_CONCURRENCY="2")
    expected = without.get("page")

    assert with_us.get_exactly("page", len(expected)) == expected
    with_us.wait_for("begun")
    # Another one is served meanwhile: by the other worker, or on the event loop.
    assert with_us.get_exactly("page", len(expected)) == expected
    # One slice at a time in each process: of two workers, or of one event loop.
    hanging = 2 if server == "gunicorn" else 1
    # Or one more, if a page enlists only when the first job has gone on.
    wait_until(lambda: with_us.diary().count("begun") >= hanging, 30, "all hang")
    wait_until(lambda: _released(pipe, with_us) >= hanging, 30, "all are released")


def _released(pipe: Path, site: Any) -> int:
    """Let the jobs that hang go on; return how many have."""
    # Fails where no job has the other end open.
    with suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    return int(site.diary().count("recruited"))
