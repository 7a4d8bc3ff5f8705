"""What users write is accepted by type checkers, and their mistakes are not."""

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
PYRIGHT = shutil.which("pyright", path=Path(sys.executable).parent) or shutil.which(
    "pyright"
)
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


@pytest.mark.skipif(not PYRIGHT, reason="pyright is not installed: pip install pyright")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_pyright_refuses_the_same_lines_as_mypy(program: Path, tmp_path: Path) -> None:
    text = program.read_text(encoding="utf-8")
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(json.dumps({"enableTypeIgnoreComments": False}))
    command = [str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable]
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
        for number, line in enumerate(text.splitlines())
        if "# type: ignore[" in line
    }
    assert refused == mistakes
