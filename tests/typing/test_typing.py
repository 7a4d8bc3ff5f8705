"""What users write is accepted by mypy, and their mistakes are not."""

from __future__ import annotations

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
