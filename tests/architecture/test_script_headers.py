"""The header of a Lua script is its contract, and says all that it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import workstealing
from workstealing.queue.scripts import Script, load_script

ROOT = Path(workstealing.__file__).parent
SCRIPTS = sorted(ROOT.glob("*/lua/*.lua"))
HELPERS = sorted(ROOT.glob("*/lua/lib/*.lua"))
COMMENT = re.compile(r"^ *--.*$|--[^'\"\n]*$", re.MULTILINE)


def loaded(path: Path) -> Script:
    return load_script(f"workstealing.{path.parent.parent.name}", path.stem)


def code_of(path: Path) -> str:
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def named(path: Path) -> set[str]:
    """Return the locals, loop variables and parameters that code introduces."""
    code = code_of(path)
    lists = re.findall(r"\blocal (?!function)([\w, ]+)", code)
    lists += re.findall(r"\bfor ([\w, ]+?) (?:in|=)", code)
    return {name.strip() for names in lists for name in names.split(",")}


def declared_by(script: Script) -> set[str]:
    keys, arguments = script.declared_keys, script.declared_arguments
    return {*keys.in_lua("KEYS"), *arguments.in_lua("ARGV")}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_says_what_it_replies_and_uses_no_numbers(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert "\n-- Reply: " in text
    assert not re.findall(r"(?:KEYS|ARGV)\[\d+\]", text), "names, not numbers"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_uses_each_key_and_argument_that_it_declares(path: Path) -> None:
    script = loaded(path)
    own = code_of(path)
    included = {part for part, _ in script.parts}
    texts = [path.read_text() for path in HELPERS if f"lib/{path.name}" in included]
    lines = re.findall(r"--- uses: *(.+)", "\n".join(texts))
    used = {name.strip() for line in lines for name in line.split(",")}

    tails = {script.declared_keys.tail: "KEYS", script.declared_arguments.tail: "ARGV"}
    for name in declared_by(script):
        table = tails.get(name.removesuffix("_at"))
        is_read = table is not None and re.search(rf"\b{table}\b", own)
        assert is_read or re.search(rf"\b{name}\b", own) or name in used, name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_does_not_hide_a_name_of_its_header(path: Path) -> None:
    script = loaded(path)
    keys, arguments = script.declared_keys.types, script.declared_arguments.types

    assert not set(keys) & set(arguments)
    assert not declared_by(script) & named(path)


@pytest.mark.parametrize("path", HELPERS, ids=lambda path: path.stem)
def test_a_helper_says_which_names_of_a_header_it_uses(path: Path) -> None:
    every = {name for script in map(loaded, SCRIPTS) for name in declared_by(script)}
    text = path.read_text(encoding="utf-8")

    for function in re.split(r"^(?=local function )", text, flags=re.MULTILINE):
        uses = re.findall(r"--- uses: *(.+)", function)
        own = {name.strip() for names in uses for name in names.split(",")}
        signature = re.match(r"local function \w+\((.*)\)", function)
        own |= set(re.split(", *", signature[1])) if signature else set()
        # Fields, methods and what stands in quotes are not names of a header.
        code = re.sub(r"'[^']*'|\.\w+|\w+ =(?!=)|\w+\(", "", COMMENT.sub("", function))
        words = set(re.findall(r"\b[a-z]\w*", code)) - named(path)
        assert words & every <= own, f"{path.name}: {words & every - own}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_calls_no_function_that_is_not_made_before(path: Path) -> None:
    every = {name for helper in HELPERS for name in defined_in(code_of(helper))}
    made: set[str] = set()

    for line in COMMENT.sub("", loaded(path).text).splitlines():
        made |= defined_in(line)
        called = set(re.findall(r"(?<![\w.:])([a-z]\w*)\(", line))
        assert called & every <= made, called & every - made


def defined_in(code: str) -> set[str]:
    return set(re.findall(r"\blocal function (\w+)", code))


@pytest.mark.parametrize("path", [*SCRIPTS, *HELPERS], ids=lambda path: path.stem)
def test_a_script_builds_no_key_and_uses_only_what_every_server_has(path: Path) -> None:
    code = code_of(path)

    keys = re.findall(r"redis\.p?call\('\w+',\s*([^,)]*)", code)
    assert not [key for key in keys if ".." in key]
    for banned in ("cmsgpack", "struct.", "sha1hex", "#!lua", "'KEYS'", "FLUSH"):
        assert banned not in code
