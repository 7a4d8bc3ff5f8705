"""Every Python block of the README and the docs runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from workstealing.testing import Server

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")
PICTURE = re.compile(r'<(?:img|source) [^>]*src(?:set)?="([^"]+)"')


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=_name)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: Path, redis_server: Server, tmp_path: Path
) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "WORKSTEALING_URL": redis_server.url},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_pictures_of_a_page_are_there(page: Path) -> None:
    for picture in PICTURE.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / picture).is_file(), picture
