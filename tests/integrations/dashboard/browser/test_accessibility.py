"""axe-core, which checks pages for those who cannot see them, finds nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import OpenPage
from .shop import Shop

axe_api = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="axe needs the package axe-playwright-python",
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_on_any_page(
    open_page: OpenPage, shop: Shop, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900}
    page = open_page(viewport=size, color_scheme=scheme)
    problems: dict[str, Any] = {}
    for name, path in shop.pages().items():
        page.goto(path)
        page.wait_for_selector("#liveness.live")
        for found in _violations(page):
            problems.setdefault(found, []).append(name)
    context = page.context
    context.clear_cookies()
    page.goto("/login")
    for found in _violations(page):
        problems.setdefault(found, []).append("login")

    assert not problems, json.dumps(problems, indent=1)


def _violations(page: Any) -> list[str]:
    response = axe_api.Axe().run(page).response
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}"
        for one in response["violations"]
    ]
