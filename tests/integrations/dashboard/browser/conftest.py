"""A real browser: Debian's chromium, or the one that Playwright has installed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing import Server

from .shop import TOKEN, Shop, serving

playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="the browser tests need the package playwright"
)

_ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]

OpenPage = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium_path() -> str:
    own = Path.home().glob(".cache/ms-playwright/chromium-*/chrome-linux*/chrome")
    found = shutil.which("chromium") or next(map(str, own), None)
    if found is None:
        pytest.skip("no chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def chromium(chromium_path: str) -> Iterator[Any]:
    # No longer: while Playwright runs, its thread has an event loop that runs, and no
    # test that is a coroutine could.
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path, args=_ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shop_server() -> Iterator[Server]:
    """A server of its own: a test stops it for a while."""
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def shop(chromium_path: str, shop_server: Server) -> Iterator[Shop]:
    shop = Shop(shop_server.url, "media-pipeline")
    shop.open()
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def address(shop: Shop, shop_server: Server) -> Iterator[str]:
    with serving(shop_server.url, shop.queue.name) as address:
        yield address


@pytest.fixture
def open_page(chromium: Any, address: str) -> Iterator[OpenPage]:
    """Sign in, and return a page of the browser; its errors fail the test."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_page(path: str = "/", token: str = TOKEN, **options: Any) -> Any:
        context = chromium.new_context(base_url=address, **options)
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto("/login")
        page.fill("#token", token)
        page.click("text=Sign in")
        page.wait_for_selector("#live")
        if path != "/":
            page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
