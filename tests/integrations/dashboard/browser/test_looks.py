"""Every page in a real browser: wide and narrow, light and dark.

axe-core checks pages for those who cannot see them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import OpenPage
from .shop import Shop

axe_api = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="axe needs the package axe-playwright-python",
)

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
# Where to put pictures of all pages, for who wants to look at them.
PICTURES = os.environ.get("WORKSTEALING_PICTURES")

_TOO_HIGH = """() => [...document.querySelectorAll('tr')]
  .filter(row => row.getBoundingClientRect().height > 200)
  .map(row => row.textContent.slice(0, 80))"""
_OVERFLOW = """() => document.documentElement.scrollWidth
  - document.documentElement.clientWidth"""
_AXE = """async () => {
  const { violations } = await axe.run({ resultTypes: ["violations"] });
  return violations.map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`);
}"""
# The contrast of each text with what is behind it, where that is one colour.
_FAINT = """() => {
  const bright = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).map((one) => one / 255)
      .map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$|transparent/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const hasText = (one) => one.nodeType === 3 && one.data.trim();
    const own = [...node.childNodes].some(hasText);
    if (!own || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const ink = bright(node instanceof SVGElement ? style.fill : style.color);
    const paper = bright(ground(node));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) found.push(`${node.nodeName} ${node.className} ${contrast}`);
  }
  return found;
}"""


# As many tests, so that several processors share the pages.
PARTS = 3


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_fits_and_can_be_read_and_axe_finds_nothing(
    open_page: OpenPage, shop: Shop, part: int
) -> None:
    page = open_page()
    problems: list[Any] = []
    for name, path in list(shop.pages().items())[part::PARTS]:
        page.goto(path)
        page.wait_for_selector("#liveness.live")
        problems += _problems(page, name)

    assert problems == []


def test_who_signs_in_finds_a_page_that_can_be_read(open_page: OpenPage) -> None:
    page = open_page()
    page.context.clear_cookies()
    page.goto("/login")

    assert _problems(page, "login") == []


def _problems(page: Any, name: str) -> list[Any]:
    """Look at a page at each width and in each scheme."""
    found: list[Any] = []
    page.evaluate(axe_api.Axe().axe_script)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            overflow = page.evaluate(_OVERFLOW)
            seen = [
                *([f"{overflow} too wide"] if overflow > 0 else []),
                *page.evaluate(_TOO_HIGH)[:2],
                *page.evaluate(_FAINT)[:3],
                *page.evaluate(_AXE),
            ]
            found += [(name, width, scheme, one) for one in seen]
            if PICTURES:
                file = Path(PICTURES) / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=file, full_page=True)
    return found
