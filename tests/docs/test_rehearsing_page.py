"""The commands on the page about rehearsals print what it says, and its test passes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from workstealing.rehearsing.stories import StoryKind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rehearsing.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(
    r"^```console\n\$ workstealing ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
EXAMPLES = {match[1]: match[2] for match in EXAMPLE.finditer(PAGE)}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder of a reader who has saved the page's code."""
    (tmp_path / "shop.py").write_text("\n".join(BLOCK.findall(PAGE)))
    return tmp_path


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda words: words.split()[3])
def test_an_example_prints_what_the_page_says(shop: Path, command: str) -> None:
    words = shlex.split(command.replace("\\\n", ""))

    program = "from workstealing.cli.entry import main; main()"
    done = _run(shop, "-c", program, *words)

    assert _told(done.stdout) == _told(EXAMPLES[command])
    assert done.returncode == ("failed" in EXAMPLES[command])


def test_the_test_of_the_page_passes(shop: Path) -> None:
    done = _run(shop, "-m", "pytest", "-q", "-p", "no:cacheprovider", "shop.py")

    assert "1 passed" in done.stdout, done.stdout


def test_the_page_describes_every_story() -> None:
    assert [kind for kind in get_args(StoryKind) if f"| `{kind}" not in PAGE] == []


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )


def _told(printed: str) -> list[str]:
    """Return what does not depend on how a version of Python counts steps."""
    lines = [line for line in printed.splitlines() if not line.startswith(" ")]
    kept = [line for line in lines if "at step" not in line and "stories" not in line]
    return [re.sub(r"\(\d+ steps", "(steps", line) for line in kept]
