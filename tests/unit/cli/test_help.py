"""What `--help` shows of each command in the lists of commands."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from workstealing.cli.commands import workstealing


def groups(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Group]]:
    if isinstance(command, click.Group):
        yield path or "workstealing", command
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from groups(inner, f"{path} {name}".strip())


@pytest.mark.parametrize(("path", "group"), [*groups(workstealing)])
def test_each_command_is_summed_up_in_one_line_that_is_not_cut(
    path: str, group: click.Group
) -> None:
    with click.Context(group, info_name=path, terminal_width=80) as context:
        shown = context.get_help()
    assert "..." not in shown.partition("Commands:")[2]
