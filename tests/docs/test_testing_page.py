"""The tests on the page about testing pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from mypy import api

from workstealing.testing.draining import SeenOutcome

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def test_the_tests_of_the_page_pass_without_a_server(tmp_path: Path) -> None:
    page = _write_tests(tmp_path / "test_page.py")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
        "filterwarnings = error\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WORKSTEALING_EMBEDDED": "never"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert page.count("\ndef test_") > 10
    assert f"{page.count(chr(10) + 'def test_')} passed" in done.stdout


def test_the_tests_of_the_page_are_typed(tmp_path: Path) -> None:
    program = tmp_path / "test_page.py"
    _write_tests(program)

    output, errors, code = api.run(["--strict", "--no-error-summary", str(program)])

    assert (code, output, errors) == (0, "", "")


def test_the_page_lists_how_an_attempt_can_end() -> None:
    assert sorted(ROW.findall(_page())) == sorted(get_args(SeenOutcome))


def _write_tests(program: Path) -> str:
    page = _page()
    program.write_text("\n".join(BLOCK.findall(page)), encoding="utf-8")
    return page


def _page() -> str:
    return (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
