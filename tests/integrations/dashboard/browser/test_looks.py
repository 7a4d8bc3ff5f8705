"""Every page in a real browser: wide and narrow, light and dark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import OpenPage
from .shop import Shop

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
# Where to put pictures of all pages, for who wants to look at them.
PICTURES = os.environ.get("WORKSTEALING_PICTURES")

_TOO_HIGH = """() => [...document.querySelectorAll('tr')]
  .filter(row => row.getBoundingClientRect().height > 200)
  .map(row => row.textContent.slice(0, 80))"""
_OVERFLOW = """() => document.documentElement.scrollWidth
  - document.documentElement.clientWidth"""
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


@pytest.mark.timeout(240)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_can_be_read(
    open_page: OpenPage, shop: Shop, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900}
    page = open_page(viewport=size, color_scheme=scheme)
    problems: dict[str, Any] = {}
    for name, path in shop.pages().items():
        page.goto(path)
        page.wait_for_selector("#liveness.live")
        too_high, overflow = page.evaluate(_TOO_HIGH), page.evaluate(_OVERFLOW)
        faint = page.evaluate(_FAINT)
        if too_high or overflow > 0 or faint:
            problems[name] = (overflow, too_high[:2], faint[:3])
        if PICTURES:
            file = Path(PICTURES) / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=file, full_page=True)

    assert problems == {}
