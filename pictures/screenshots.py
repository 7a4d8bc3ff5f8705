"""Takes pictures of the dashboard with Chromium, in both themes.

Needs the package playwright, and Debian's `chromium` or the one that Playwright has
installed; where there is none, the pictures stay as they are.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from pictures.canvas import DARK, LIGHT
from pictures.demo_shop import TOKEN, DemoShop, serving
from workstealing.testing import Server

__all__ = ("FOLDER", "SHOTS", "THEMES")

FOLDER = Path(__file__).parent.parent / "docs/images"
THEMES = (LIGHT.name, DARK.name)
# The page, and the size of the window.
SHOTS = {
    "dashboard-home": ("home", 1080, 330),
    "dashboard-queue": ("queue", 1080, 900),
    "dashboard-dead": ("dead", 1080, 640),
    "dashboard-task": ("task", 900, 745),
    "dashboard-phone": ("queue", 390, 844),
}
_ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu"),
    *("--no-first-run", "--disable-background-networking"),
]


def main() -> None:
    """Take them all."""
    own = Path.home().glob(".cache/ms-playwright/chromium-*/chrome-linux*/chrome")
    found = shutil.which("chromium") or next(map(str, own), None)
    if found is None:
        sys.stderr.write("no chromium: the screenshots stay as they are\n")
        return
    with Server() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        with closing(DemoShop(server.url)) as shop, serving(server.url) as address:
            shop.open()
            for theme in THEMES:
                _take(browser, address, shop.pages(), theme)
        browser.close()


def _take(browser: Browser, address: str, pages: dict[str, str], theme: str) -> None:
    for name, (page_name, width, height) in SHOTS.items():
        context = browser.new_context(
            base_url=address,
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            device_scale_factor=1.5,
        )
        page = context.new_page()
        page.goto("/login")
        page.fill("#token", TOKEN)
        page.click("text=Sign in")
        page.wait_for_selector("#live")
        page.goto(pages[page_name])
        page.wait_for_selector("#liveness.live")
        page.screenshot(path=FOLDER / f"{name}-{theme}.png")
        context.close()


if __name__ == "__main__":
    main()
