"""How many are recruited after which requests, as told by the diary of a site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.testing import wait_until

Serve = Callable[..., Any]
SERVERS = pytest.mark.parametrize("server", ["gunicorn", "uvicorn"])


@pytest.fixture
def recruits(serve: Serve) -> Callable[..., int]:
    """Serve the site, ask for pages, and count the recruits when it has stopped."""

    def recruits(server: str, *paths: str, **settings: str) -> int:
        site = serve(server, **settings)
        for path in paths:
            assert site.get(path), site.output()
        return Counter(site.stop())["recruited"]

    return recruits


@SERVERS
def test_every_request_enlists_once(server: str, recruits: Any) -> None:
    pages = ("page", "stream", "awaited", "awaited_stream", "file", "kept", "kept")

    assert recruits(server, *pages) == len(pages)


@SERVERS
def test_a_view_that_raises_has_a_response_as_any_other(
    server: str, recruits: Any
) -> None:
    assert recruits(server, "fail") == 1


@SERVERS
def test_only_fine_ones_enlist_if_wanted(server: str, recruits: Any) -> None:
    assert recruits(server, "page", "gone", "fail", "unchanged", WHEN="fine") == 2


@SERVERS
def test_only_quick_ones_enlist_if_wanted(server: str, recruits: Any) -> None:
    assert recruits(server, "page", "stream", WHEN="quick") == 0


@SERVERS
def test_only_those_that_ask_enlist_if_wanted(server: str, recruits: Any) -> None:
    assert recruits(server, "page", "asks", "stream", WHEN="asked") == 1


@SERVERS
def test_a_view_can_decline(server: str, recruits: Any) -> None:
    assert recruits(server, "declines", "page") == 1


@SERVERS
def test_no_request_enlists_if_nobody_should(server: str, recruits: Any) -> None:
    assert recruits(server, "page", "asks", MORE='{"WHEN": null}') == 0


@SERVERS
def test_a_body_that_raises_enlists_nobody(server: str, recruits: Any) -> None:
    assert recruits(server, "fail_late", "page") == 1


def test_a_client_that_goes_away_enlists_nobody(serve: Serve) -> None:
    site = serve("gunicorn")

    site.hang_up("endless")
    site.wait_for("closed")
    assert site.get("page")
    assert Counter(site.stop())["recruited"] == 1


def test_a_site_goes_on_after_a_client_went_away_under_asgi(serve: Serve) -> None:
    site = serve("uvicorn")

    site.hang_up("awaited_stream")
    assert site.get("page").endswith(b"page")


@pytest.mark.parametrize("server", ["gunicorn", "gunicorn-preload"])
def test_each_worker_of_gunicorn_has_a_recruiter_of_its_own(
    server: str, serve: Serve
) -> None:
    site = serve(server, JOB="process", WEB_CONCURRENCY="2")

    def workers() -> set[str]:
        site.get("page")
        return {line for line in site.diary() if line.startswith("by-")}

    wait_until(lambda: len(workers()) == 2, 30, "both workers were recruited")
    assert all(line.endswith(f"-of-{site.pid}") for line in workers())


@SERVERS
def test_a_hit_of_the_cache_enlists(server: str, recruits: Any) -> None:
    hooked = '"workstealing.integrations.django.LocMemCache"'
    settings = f'{{"CACHES": {{"default": {{"BACKEND": {hooked}}}}}}}'

    # One by the hit and one after the request; none on the event loop.
    assert recruits(server, "hit", "awaited_hit", SETTINGS=settings) == 4
    assert recruits(server, "hit_on_the_loop", SETTINGS=settings) == 1
