"""What a worker logs, and how loud."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest
from click.testing import CliRunner

from workstealing.cli.worker_output import log_options, log_to_stderr


@contextmanager
def bare_logging() -> Iterator[logging.Logger]:
    """The root logger as Python starts with it."""
    root, library = logging.getLogger(), logging.getLogger("workstealing")
    before = root.handlers[:], root.level, library.level
    root.handlers[:] = []
    try:
        yield root
    finally:
        root.handlers[:], level, library_level = before
        root.setLevel(level)
        library.setLevel(library_level)


@pytest.mark.parametrize(
    ("arguments", "level"),
    [([], "INFO"), (["--quiet"], "WARNING"), (["-v"], "DEBUG")],
)
def test_a_worker_logs_at_info_unless_it_is_to_be_quiet_or_verbose(
    arguments: list[str], level: str
) -> None:
    @click.command()
    @log_options
    def command(level: int) -> None:
        click.echo(logging.getLevelName(level))

    assert CliRunner().invoke(command, arguments).output == f"{level}\n"


def test_quiet_and_verbose_exclude_each_other() -> None:
    @click.command()
    @log_options
    def command(level: int) -> None: ...

    ended = CliRunner().invoke(command, ["--quiet", "--verbose"])

    assert ended.exit_code == 2
    assert "give --quiet or --verbose, not both" in ended.output


def test_finished_tasks_are_logged_with_time_level_and_logger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with bare_logging():
        log_to_stderr(logging.INFO, None)
        logging.getLogger("workstealing.workers").info("task a (echo@1) done in 3 ms")

    line = capsys.readouterr().err
    assert line.endswith(" INFO workstealing.workers: task a (echo@1) done in 3 ms\n")


def test_quiet_leaves_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("workstealing.workers")

    with bare_logging():
        log_to_stderr(logging.WARNING, None)
        logger.info("task a (echo@1) done in 3 ms")
        logger.warning("task b (echo@1) failed")

    assert capsys.readouterr().err.count("\n") == 1


def test_an_application_that_set_up_logging_keeps_it_and_may_still_be_quiet() -> None:
    own = logging.NullHandler()

    with bare_logging() as root:
        root.addHandler(own)
        log_to_stderr(logging.WARNING, None)

        assert root.handlers == [own]
        assert not logging.getLogger("workstealing.workers").isEnabledFor(logging.INFO)
        assert logging.getLogger("app").getEffectiveLevel() == root.level
