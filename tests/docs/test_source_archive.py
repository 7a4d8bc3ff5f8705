"""Whoever unpacks the source archive can run its tests."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARCHIVED = re.compile(r"\[tool\.hatch\.build\.targets\.sdist\]\ninclude = \[([^]]*)\]")
# The build adds these by itself.
ADDED = {".gitignore", "LICENSE", "README.md", "pyproject.toml"}


def test_the_source_archive_holds_all_that_the_repository_holds() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    archived = ARCHIVED.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert archived is not None
    names = {path.split("/")[0] for path in tracked.stdout.splitlines()}
    assert names == ADDED | set(re.findall(r'"([^"]+)"', archived[1]))
