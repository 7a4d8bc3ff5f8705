"""`workstealing top`, on a real server, and where it matters on a real terminal."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from workstealing import TaskQueue, Worker
from workstealing.cli.commands import workstealing
from workstealing.client.queue_internals import internals_of
from workstealing.testing import Server, wait_until

from .pseudo_terminal import PseudoTerminal

StartCli = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(key_prefix, redis_server.url)
    yield queue
    queue.close()


def test_once_prints_one_frame(queue: TaskQueue, redis_server: Server) -> None:
    @queue.task(name="echo")
    def echo() -> None: ...

    echo.submit_many([()] * 3)
    Worker(queue, pool="mill").run(until_empty=True)
    echo.submit_many([()] * 2)

    ended = CliRunner().invoke(
        workstealing,
        [
            *("top", "--once", "--interval", "0.1"),
            *("--queue", queue.name, "--redis", redis_server.url),
        ],
    )

    assert ended.exit_code == 0, ended.output
    first, alarm, names, numbers, _, rates, *_ = ended.output.splitlines()
    assert first.startswith(f"{queue.name}/default on unix:")
    assert alarm.startswith("2 tasks wait and no worker is alive.")
    assert dict(zip(names.split(), numbers.split(), strict=False))["waiting"] == "2"
    assert rates.split()[:2] == ["0.0", "0.0"]


def test_once_of_no_such_queue_says_so_and_exits_with_one(
    redis_server: Server, key_prefix: str
) -> None:
    ended = CliRunner().invoke(
        workstealing,
        [
            *("top", "--once", "--interval", "0.1"),
            *("--queue", key_prefix, "--redis", redis_server.url),
        ],
    )

    assert "there is no such queue" in ended.output
    assert ended.exit_code == 1


def test_once_without_a_server_is_one_clear_line() -> None:
    ended = CliRunner().invoke(
        workstealing,
        ["top", "--once", "--queue", "q", "--redis", "unix:///nowhere/socket"],
    )

    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ")
    assert ended.output.count("\n") == 1


def test_a_pipe_gets_frame_after_frame_until_it_is_interrupted(
    queue: TaskQueue, start_cli: StartCli
) -> None:
    @queue.task(name="echo")
    def echo() -> None: ...

    process = start_cli("top", "--interval", "0.1", "--queue", queue.name)
    assert process.stdout is not None
    assert "there is no such queue" in process.stdout.readline()
    echo.submit()
    wait_until(
        lambda: process.stdout.readline().split()[:4] == ["1", "0", "0", "0"],  # type: ignore[union-attr]
        30,
        "the task to be seen",
    )

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (0, "")


Opened = Callable[[str], PseudoTerminal]


@pytest.fixture
def opened(app: Path, key_prefix: str) -> Iterator[Opened]:
    terminals: list[PseudoTerminal] = []

    def opened(url: str) -> PseudoTerminal:
        where = ("--queue", key_prefix, "--redis", url)
        terminals.append(
            PseudoTerminal(app, "top", "--interval", "0.1", *where, width=120)
        )
        return terminals[-1]

    yield opened
    for terminal in terminals:
        terminal.close()


def test_on_a_terminal_the_key_q_ends_it(
    opened: Opened, queue: TaskQueue, redis_server: Server
) -> None:
    queue.end_input()
    terminal = opened(redis_server.url)
    terminal.wait_for("its input has ended")

    terminal.press("x")
    terminal.wait_for("its input has ended")
    terminal.press("q")

    assert terminal.ended() == 0


def test_on_a_terminal_ctrl_c_ends_it_too(opened: Opened, redis_server: Server) -> None:
    terminal = opened(redis_server.url)
    terminal.wait_for("there is no such queue")

    # What a terminal sends for it.
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.ended() == 0


def test_a_server_that_goes_away_is_reported_and_waited_for(
    opened: Opened, key_prefix: str
) -> None:
    with Server() as server:
        terminal = opened(server.url)
        terminal.wait_for("there is no such queue")
        server.kill()
        terminal.wait_for("REDIS UNREACHABLE for")
        server.restart()
        again = TaskQueue(key_prefix, server.url)
        again.end_input()
        terminal.wait_for("its input has ended")
        terminal.press("q")

        assert terminal.ended() == 0
        internals_of(again).driver.client.close()
