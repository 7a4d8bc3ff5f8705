"""The page about the command line names every command and every option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from workstealing.cli.commands import workstealing

PAGE = (Path(__file__).parents[2] / "docs/command-line.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def _commands(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(_commands(workstealing, ""))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    assert re.search(rf"`(workstealing )?{name}\b|\$ workstealing {name}\b", PAGE), name
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            long = next(word for word in parameter.opts if word.startswith("--"))
            assert long in OPTION.findall(PAGE), f"{name} {long}"


def test_every_option_on_the_page_exists() -> None:
    known = {
        word
        for command in COMMANDS.values()
        for parameter in command.params
        for word in parameter.opts
    }

    assert set(OPTION.findall(PAGE)) - known - {"--help"} == set()
