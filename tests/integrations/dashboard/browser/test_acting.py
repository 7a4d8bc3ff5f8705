"""Buttons in a real browser, with and without script."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from .conftest import OpenPage
from .shop import READ_ONLY, Shop

pytestmark = pytest.mark.slow

WITH_AND_WITHOUT = pytest.mark.parametrize(
    "script", [True, False], ids=["script", "no-script"]
)


def _path(shop: Shop, page: str, **more: str) -> str:
    where = {"queue": shop.queue.name, "run": "default", **more}
    return f"{page}?{urlencode(where)}"


@WITH_AND_WITHOUT
def test_a_group_of_dead_letters_is_replayed_behind_a_confirmation(
    open_page: OpenPage, shop: Shop, script: bool
) -> None:
    page = open_page(_path(shop, "/tasks", state="dead"), java_script_enabled=script)
    before = shop.queue.counts().stats["dead"]

    page.locator(".group", has_text="OSError").get_by_role("button").click()
    assert "Replay 7 dead tasks?" in page.inner_text("h1")
    page.click("text=Yes, replay")

    assert "7 of 7 tasks replayed." in page.inner_text(".notice[role=status]")
    # They fail again: as many dead letters as there were.
    shop.await_dead(before + 7)


@WITH_AND_WITHOUT
def test_ticked_tasks_are_cancelled_and_no_others(
    open_page: OpenPage, shop: Shop, script: bool
) -> None:
    names = [f"tick-{script}-{n}" for n in range(3)]
    for name in names:
        shop.later.options(id=name, delay=3000).submit(1)
    listed = _path(shop, "/tasks", queue=shop.idle.name, state="delayed", prefix="tick")
    page = open_page(listed, java_script_enabled=script)

    for name in names[:2]:
        page.check(f"input[value='{name}']")
    page.click("text=Cancel ticked")

    assert "2 of 2 tasks cancelled." in page.inner_text(".notice[role=status]")
    states = [shop.idle.handle(name).state().state.value for name in names]
    assert states == ["cancelled", "cancelled", "delayed"]
    shop.idle.handle(names[2]).cancel()


@WITH_AND_WITHOUT
def test_all_that_match_are_cancelled_behind_a_confirmation(
    open_page: OpenPage, shop: Shop, script: bool
) -> None:
    for n in range(120):
        shop.later.options(id=f"all-{script}-{n}", delay=3000).submit(1)
    kept = shop.later.options(id=f"kept-{script}", delay=3000).submit(1)
    listed = _path(
        shop, "/tasks", queue=shop.idle.name, state="delayed", prefix=f"all-{script}"
    )
    page = open_page(listed, java_script_enabled=script)
    assert "50 match, of" in page.inner_text("#live")

    page.click("text=Cancel all that match")
    assert "Cancel 120 delayed tasks?" in page.inner_text("h1")
    page.click("text=Yes, cancel")

    assert "120 of 120 tasks cancelled." in page.inner_text(".notice[role=status]")
    assert kept.state().state == "delayed"
    kept.cancel()


@WITH_AND_WITHOUT
def test_delete_takes_two_clicks(open_page: OpenPage, shop: Shop, script: bool) -> None:
    letter = f"letter-{script}"
    before = shop.queue.counts().stats["dead"]
    shop.long_one.options(id=letter).submit("no")
    shop.await_dead(before + 1)
    page = open_page(_path(shop, "/task", id=letter), java_script_enabled=script)
    sure = page.get_by_role("button", name="Yes, delete")
    assert not sure.is_visible()

    page.click("summary:has-text('Delete')")
    sure.click()

    assert "Deleted." in page.inner_text(".notice[role=status]")
    assert shop.queue.handle(letter).state().state == "unknown"


def test_who_may_only_look_sees_no_buttons(open_page: OpenPage, shop: Shop) -> None:
    page = open_page(token=READ_ONLY)

    for path in shop.pages().values():
        page.goto(path)
        buttons = page.locator("main button").all_inner_texts()
        assert [one for one in buttons if one != "Filter"] == [], path
    assert "read-only" in page.inner_text("footer")
