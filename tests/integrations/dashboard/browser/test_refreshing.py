"""A page that refreshes itself leaves its reader alone."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from workstealing.testing import Server

from .conftest import OpenPage
from .shop import Shop

pytestmark = pytest.mark.slow


def _path(shop: Shop, page: str, **more: str) -> str:
    where = {"queue": shop.queue.name, "run": "default", **more}
    return f"{page}?{urlencode(where)}"


def _refreshed(page: Any) -> None:
    """Let the page be fetched and changed two times, without the time in between."""
    for _ in range(2):
        with page.expect_response(lambda answer: answer.url == page.url):
            page.evaluate("() => refresh()")
        page.wait_for_function("() => !isAsking")
    page.wait_for_function("() => !document.body.classList.contains('stale')")


@pytest.mark.timeout(120)
def test_scroll_selection_focus_ticks_and_open_details_survive(
    open_page: OpenPage, shop: Shop
) -> None:
    page = open_page(
        _path(shop, "/tasks", state="dead", error="no"),
        viewport={"width": 760, "height": 500},
    )
    page.check("tbody tr:nth-child(3) input")
    page.focus("input[name=worker]")
    page.keyboard.type("med")
    page.evaluate(
        """() => {
          const cell = document.querySelector("tbody tr:nth-child(5) td:nth-child(4)");
          getSelection().selectAllChildren(cell);
        }"""
    )
    page.evaluate("() => { document.querySelector('.scroll').scrollLeft = 90 }")
    # Not far: a text above may take a line less than before, and the page be shorter.
    page.evaluate("() => scrollTo(0, 100)")
    seen = "() => [scrollY, getSelection().toString()]"
    before = page.evaluate(seen)
    sideways = "() => document.querySelector('.scroll').scrollLeft"
    moved = page.evaluate(sideways)

    _refreshed(page)

    assert page.evaluate(seen) == before
    assert before == [100, "failed"]
    assert page.evaluate(sideways) == moved > 0
    assert page.is_checked("tbody tr:nth-child(3) input")
    assert page.evaluate("() => document.activeElement.name") == "worker"
    assert page.input_value("input[name=worker]") == "med"


@pytest.mark.timeout(120)
def test_what_was_opened_stays_open_while_the_rest_moves(
    open_page: OpenPage, shop: Shop
) -> None:
    page = open_page(_path(shop, "/task", id="video-5"))
    page.click("text=Envelope and outcome as JSON")
    before = page.inner_text(".why")

    page.wait_for_function(
        "(before) => document.querySelector('.why').innerText !== before", arg=before
    )
    _refreshed(page)

    assert page.get_by_role("heading", name="Envelope").is_visible()


@pytest.mark.timeout(120)
def test_log_and_progress_of_a_running_task_move(
    open_page: OpenPage, shop: Shop
) -> None:
    page = open_page(_path(shop, "/task", id="video-5"))
    context = shop.steps[0]

    context.progress(1000, 1100, "nearly there")
    print("910 done", file=context.stdout)
    context.stdout.flush()

    page.wait_for_selector("text=nearly there")
    page.wait_for_selector(".log >> text=910 done")


def test_a_cancelled_task_changes_without_a_reload(
    open_page: OpenPage, shop: Shop
) -> None:
    handle = shop.later.options(id="never").submit(7)
    page = open_page(_path(shop, "/task", queue=shop.idle.name, id="never"))
    page.wait_for_selector(".bar-top .state.waiting")

    handle.cancel()

    page.wait_for_selector(".bar-top .state.cancelled")


def test_p_pauses_and_slash_searches(open_page: OpenPage, shop: Shop) -> None:
    page = open_page(_path(shop, "/queue"))
    page.wait_for_selector("#liveness.live")

    page.keyboard.press("p")
    page.wait_for_selector("#liveness.held >> text=paused at")
    page.keyboard.press("p")
    page.wait_for_selector("#liveness.live")
    page.keyboard.press("/")
    page.keyboard.type("video-5\n")

    page.wait_for_url("**/task?**")
    assert page.inner_text("h1") == "shop.transcode@1"


@pytest.mark.timeout(120)
def test_while_redis_is_away_the_last_numbers_stay_under_a_banner(
    open_page: OpenPage, shop: Shop, shop_server: Server
) -> None:
    page = open_page(_path(shop, "/queue", queue=shop.idle.name))
    numbers = page.inner_text(".tiles")
    shop_server.pause()
    try:
        page.wait_for_selector("#banner >> text=Redis is unavailable", timeout=60_000)
        assert "The numbers are those of" in page.inner_text("#banner")
        assert page.inner_text(".tiles").split()[0] == numbers.split()[0]
        page.wait_for_selector("#liveness.gone >> text=last seen")
    finally:
        shop_server.resume()

    page.wait_for_selector("#liveness.live", timeout=60_000)
    assert page.is_hidden("#banner")
