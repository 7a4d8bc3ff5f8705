"""What users write is accepted by mypy, and their mistakes are not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
PROGRAMS = sorted(
    path for path in HERE.glob("*.py") if not path.name.startswith("test_")
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_mypy_accepts_the_program_and_refuses_its_mistakes(program: Path) -> None:
    output, errors, code = api.run(
        ["--strict", "--warn-unused-ignores", "--no-error-summary", str(program)]
    )

    assert (code, output, errors) == (0, "", "")


def test_mypy_accepts_the_page_about_chains_and_groups(tmp_path: Path) -> None:
    page = (HERE.parents[1] / "docs" / "composition.md").read_text(encoding="utf-8")
    program = tmp_path / "page.py"
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program.write_text("\n".join(blocks), encoding="utf-8")

    output, errors, code = api.run(["--strict", "--no-error-summary", str(program)])

    assert (code, output, errors) == (0, "", "")


@pytest.mark.skipif(not shutil.which("pyright"), reason="pyright is not installed")
def test_pyright_refuses_the_same_chains_as_mypy(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text((HERE / "chains_and_groups.py").read_text())
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(json.dumps({"enableTypeIgnoreComments": False}))
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable]
    ran = subprocess.run(
        [*command, "--project", str(settings)],
        capture_output=True,
        text=True,
        check=False,
    )

    found = json.loads(ran.stdout)["generalDiagnostics"]
    refused = {
        one["range"]["start"]["line"] for one in found if one["severity"] == "error"
    }
    mistakes = {
        number
        for number, line in enumerate(program.read_text().splitlines())
        if "# type: ignore[" in line
    }
    assert refused == mistakes
