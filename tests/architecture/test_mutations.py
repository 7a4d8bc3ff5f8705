"""The rules that `make mutations` takes away stand where it looks for them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MUTATIONS = runpy.run_path(str(ROOT / ".ci/mutations.py"))["MUTATIONS"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_a_rule_stands_once_in_its_file_and_its_test_is_there(mutation: object) -> None:
    rule, file, text, instead, test = mutation  # type: ignore[misc]

    assert (ROOT / file).read_text(encoding="utf-8").count(text) == 1, rule
    assert instead != text
    module, _, name = test.partition("::")
    assert re.search(rf"def {name}\(", (ROOT / module).read_text(encoding="utf-8"))
