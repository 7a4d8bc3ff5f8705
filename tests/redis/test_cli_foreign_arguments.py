"""Whatever is typed, a command ends with a sentence and not with a traceback."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from workstealing.cli.commands import workstealing
from workstealing.testing import Server

FOREIGN = settings.get_profile("foreign")

# These go on until somebody stops them, or start something.
_ENDLESS = {"worker", "demo", "web", "top", "recruit", "node"}


def leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        if found is not None and name not in _ENDLESS:
            yield from leaves(found, (*path, name))


def options(path: tuple[str, ...]) -> list[str]:
    command: click.Command = workstealing
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return [
        option
        for parameter in command.params
        for option in parameter.opts
        # These wait for more to come.
        if option not in ("-f", "--follow", "--watch", "--help")
    ]


PATHS = sorted(leaves(workstealing, ()))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = TEXT | st.sampled_from(
    ["--", "-1", "0", "1e999", "nan", "x:y", "app:queue", "[", "{}", "dead", "\x1b[2J"]
)


# Two, for an option that takes a value swallows one.
UNKNOWN = ["--no-such-option"] * 2


@st.composite
def refused_lines(draw: st.DrawFn) -> list[str]:
    """Return a line for one that goes on for ever, which it cannot begin to obey."""
    name = draw(st.sampled_from(sorted(_ENDLESS)))
    words = VALUES | st.sampled_from([*options((name,)), "no_such_app:queue"])
    garbage = draw(st.lists(words, max_size=5))
    where = draw(st.sampled_from(range(len(garbage) + 1)))
    app = [] if name in ("demo", "node") else ["no_such_app:queue"]
    return [name, *app, *garbage[:where], *UNKNOWN, *garbage[where:]]


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    path = draw(st.sampled_from(PATHS))
    words = VALUES | st.sampled_from(options(path) or ["--"])
    return [*path, *draw(st.lists(words, max_size=5))]


@pytest.mark.foreign
@settings(FOREIGN, max_examples=FOREIGN.max_examples * 4)
@given(lines())
def test_any_arguments_are_refused_or_obeyed(
    redis_server: Server, line: list[str]
) -> None:
    answer = type_line(redis_server, line)

    assert answer.exit_code in (0, 1, 2), (line, answer.output)


@pytest.mark.foreign
@settings(FOREIGN, max_examples=FOREIGN.max_examples * 4)
@given(refused_lines())
def test_a_command_that_would_go_on_for_ever_refuses_what_it_does_not_understand(
    redis_server: Server, line: list[str]
) -> None:
    answer = type_line(redis_server, line)

    assert answer.exit_code in (1, 2), (line, answer.output)
    assert answer.output.strip(), line


def type_line(server: Server, line: list[str]) -> Result:
    """Run a command in this process; return how it ended, which is not by an error."""
    environment = {"WORKSTEALING_URL": server.url, "WORKSTEALING_EMBEDDED": "never"}
    answer = CliRunner().invoke(workstealing, line, env=environment, input="")
    assert answer.exception is None or isinstance(answer.exception, SystemExit), line
    assert "Traceback" not in answer.output, line
    return answer
