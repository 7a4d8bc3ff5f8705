"""How a script is put together from its header, its body and its helpers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fakeredis import FakeRedis

from workstealing.errors import ConfigurationError
from workstealing.queue.scripts import Script, assemble, load_script

HEADER = """\
-- KEY inboxes[3]  list  one for each priority
-- KEY lock        hash  id -> worker#token
-- ARG most  int   tasks
-- ARG wake  flag  somebody
-- ARG name  str
-- ARGS ids  str   any number
"""


def made_of(shared: tuple[str, ...] = (), **files: str) -> Script:
    """Assemble the script `main` of some files; `lib_x` stands for `lib/x.lua`."""
    texts = {
        f"{name.replace('lib_', 'lib/')}.lua": text for name, text in files.items()
    }

    def read(path: str) -> str:
        if path not in texts:
            raise ConfigurationError(f"there is no lua/{path}")
        return texts[path]

    return assemble("main", read, shared)


def code_of(script: Script) -> list[str]:
    lines = script.text.splitlines()
    return [line.strip() for line in lines if line and not line.startswith("--")]


def test_a_helper_comes_before_the_script_and_after_what_it_needs() -> None:
    script = made_of(
        main="--- needs: steal\nreturn steal()",
        lib_steal="--- needs: clock\nlocal function steal() return now() end",
        lib_clock="local function now() return 1 end",
    )

    assert [line.split("(")[0] for line in code_of(script)] == [
        "local function now",
        "local function steal",
        "return steal",
    ]


def test_a_helper_that_several_need_is_put_in_once() -> None:
    script = made_of(
        main="--- needs: a, b, c\nreturn 1",
        lib_a="--- needs: c\nlocal a = c",
        lib_b="--- needs: c\nlocal b = c",
        lib_c="local c = 1",
    )

    assert code_of(script) == ["local c = 1", "local a = c", "local b = c", "return 1"]


def test_needs_may_take_several_lines() -> None:
    script = made_of(
        main="--- needs: a\n--- needs: b\nreturn 1",
        lib_a="local a = 1",
        lib_b="local b = 1",
    )

    assert code_of(script) == ["local a = 1", "local b = 1", "return 1"]


def test_what_is_needed_rarely_is_made_when_it_is_first_called() -> None:
    script = made_of(
        main="--- needs: clock\n--- needs rarely: sing\nreturn sing(now())",
        lib_clock="local function now() return 1 end",
        lib_sing="--- needs: clock, hum\nlocal function sing() return hum() end",
        lib_hum="local function hum() return now() end",
    )

    server = FakeRedis()
    assert server.eval(script.text, 0) == 1
    assert script.text.index("now()") < script.text.index("setmetatable")
    assert script.text.index("hum()") > script.text.index("setmetatable")
    assert script.source_of(script.text.count("\n") + 1) == "main.lua:3"


def test_what_something_else_needs_always_is_made_always() -> None:
    script = made_of(
        main="--- needs: a\n--- needs rarely: b\nreturn b()",
        lib_a="--- needs: b\nlocal a = b()",
        lib_b="local function b() return 1 end",
    )

    assert "rarely = " not in script.text
    assert code_of(script)[-1] == "return b()"


def test_an_unknown_helper_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"lua/lib/sing\.lua"):
        made_of(main="--- needs: sing\nreturn 1")


def test_an_unknown_script_of_the_package_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"queue has no lua/sing\.lua"):
        load_script("workstealing.queue", "sing")


def test_helpers_that_need_each_other_are_refused_with_the_way_round() -> None:
    with pytest.raises(ConfigurationError, match="a -> b -> a"):
        made_of(
            main="--- needs: a\nreturn 1",
            lib_a="--- needs: b\nlocal a",
            lib_b="--- needs: a\nlocal b",
        )


def test_a_script_reads_what_its_header_declares_by_name() -> None:
    body = "return {inboxes, lock, most, wake, name, ids_at}"

    script = made_of(main=f"{HEADER}\n{body}")

    assert code_of(script) == [
        "local inboxes = {KEYS[1], KEYS[2], KEYS[3]}",
        "local lock = KEYS[4]",
        "local most = tonumber(ARGV[1])",
        "local wake = ARGV[2] == '1'",
        "local name = ARGV[3]",
        "local ids_at = 4",
        body,
    ]


def test_what_the_script_does_not_mention_costs_it_nothing() -> None:
    script = made_of(main=f"{HEADER}\n-- Not the lock.\nreturn most")

    assert code_of(script) == ["local most = tonumber(ARGV[1])", "return most"]


def test_a_helper_reads_the_names_that_it_uses_where_it_says_so() -> None:
    script = made_of(
        main=f"--- needs: free\n{HEADER}\nfree('x')",
        lib_free="local function free(id)\n  --- uses: lock, most\n  return lock\nend",
    )

    assert code_of(script) == [
        "local function free(id)",
        "local lock, most = KEYS[4], tonumber(ARGV[1])",
        "return lock",
        "end",
        "free('x')",
    ]


def test_a_helper_that_uses_what_the_script_does_not_declare_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"lib/free\.lua, which uses done"):
        made_of(
            main=f"--- needs: free\n{HEADER}\nfree('x')",
            lib_free="local function free(id)\n  --- uses: done, lock\nend",
        )


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("-- KEY lock  hash\n-- KEY lock  list", "KEY lock twice"),
        ("-- ARGS ids  str\n-- ARG most  int", "ARG most after ARGS ids"),
        ("-- KEYS a  str\n-- KEYS b  str", "KEY b after KEYS a"),
    ],
)
def test_a_header_that_cannot_be_is_refused(header: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        made_of(main=f"{header}\nreturn 1")


def test_callers_pass_names_in_any_order() -> None:
    script = made_of(main=f"{HEADER}\nreturn 1")

    assert script.keys(lock="l", inboxes=("0", "1", "2")) == ("0", "1", "2", "l")
    arguments = script.arguments(ids=["x", "y"], name="n", wake=1, most=7)
    assert arguments == (7, 1, "n", "x", "y")


def test_keys_that_are_shared_are_read_from_what_has_them() -> None:
    script = made_of(("inboxes", "stats"), main=f"{HEADER}\nreturn 1")
    queue = SimpleNamespace(inboxes=("0", "1", "2"))

    assert script.keys(queue, lock="l") == ("0", "1", "2", "l")


def test_a_script_without_keys_and_arguments_takes_none() -> None:
    script = made_of(main="return 1")

    assert script.keys() == script.arguments() == ()
    with pytest.raises(TypeError):
        script.arguments(most=1)


@pytest.mark.parametrize("wrong", [{}, {"lock": "l", "key": "k"}, {"lok": "l"}])
def test_a_missing_or_unknown_name_is_an_error_at_once(wrong: dict[str, str]) -> None:
    script = made_of(main=f"{HEADER}\nreturn 1")

    with pytest.raises(TypeError, match=r"main\.keys\(\)"):
        script.keys(inboxes=("0", "1", "2"), **wrong)


def test_a_line_of_the_text_is_traced_to_its_file() -> None:
    script = made_of(
        main=f"--- needs: free\n{HEADER}\nreturn lock",
        lib_free="-- Frees.\nlocal function free()\n  --- uses: lock\nend\n",
    )
    lines = script.text.splitlines()

    assert script.source_of(lines.index("  local lock = KEYS[4]") + 1) == (
        "lib/free.lua:3"
    )
    assert script.source_of(lines.index("return lock") + 1) == "main.lua:9"


def test_a_script_is_read_once() -> None:
    first = load_script("workstealing.queue", "ranked")

    assert load_script("workstealing.queue", "ranked") is first


def test_helpers_of_the_queue_serve_other_packages() -> None:
    assert (
        "local function now_ms()" in load_script("workstealing.jobs", "names_due").text
    )
