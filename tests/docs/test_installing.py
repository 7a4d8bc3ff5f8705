"""What the pages say about installing works before the package is published."""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
COMMAND = re.compile(r"^\$ pip install (.*?)(?: +#.*)?$", re.MULTILINE)
PACKAGE = re.compile(r"'?(\./workstealing|\.|workstealing)(?:\[([\w,]+)\])?'?(?= |$)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_installs_from_a_checkout_and_by_extras_that_there_are(
    page: Path,
) -> None:
    extras = metadata("workstealing").get_all("Provides-Extra") or []

    for command in COMMAND.findall(page.read_text(encoding="utf-8")):
        package = PACKAGE.match(command)
        assert package is not None, command
        assert package[1] != "workstealing", "it is not on PyPI yet"
        assert set(filter(None, (package[2] or "").split(","))) <= set(extras), command
