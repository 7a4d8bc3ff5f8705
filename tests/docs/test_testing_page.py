"""The tests on the page about testing pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tests_of_the_page_pass_without_a_server(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(page)
    (tmp_path / "test_page.py").write_text("\n".join(blocks), encoding="utf-8")

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
