"""The header of a Lua script is a contract: which KEYS and ARGV it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import workstealing

ROOT = Path(workstealing.__file__).parent
SCRIPTS = sorted(
    path for path in ROOT.glob("*/lua/*.lua") if path.name != "__init__.lua"
)


def _split(path: Path) -> tuple[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    length = next(i for i, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:length]), "\n".join(lines[length:])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_declares_each_key_and_argument_that_it_uses(path: Path) -> None:
    header, body = _split(path)

    for table in ("KEYS", "ARGV"):
        declared = set(re.findall(rf"{table}\[(\d+|…)\]", header))
        used = set(re.findall(rf"{table}\[(\d+)\]", body))
        assert used <= declared or "…" in declared, f"{table}: {used - declared}"
        for number in declared - {"…"}:
            assert number in used or f"{table}[" in body, f"{table}[{number}] unused"
    assert "Reply:" in header


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_builds_no_key_and_uses_only_what_every_server_has(path: Path) -> None:
    _, body = _split(path)

    keys = re.findall(r"redis\.p?call\('\w+',\s*([^,)]*)", body)
    assert not [key for key in keys if ".." in key]
    for banned in ("cmsgpack", "struct.", "sha1hex", "#!lua", "'KEYS'", "FLUSH"):
        assert banned not in body
