"""`workstealing rehearse`: what it prints, how it exits, and what it leaves running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from workstealing.testing import Server, wait_until

from .pseudo_terminal import PseudoTerminal, has_colours, plain

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
StartCli = Callable[..., "subprocess.Popen[str]"]

SHOP = """
from pathlib import Path
from workstealing import TaskQueue

queue = TaskQueue("shop")
counter = Path("counter")

@queue.task
def count() -> str:
    sold = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(sold + 1))
    return "sold"

def reset() -> None:
    counter.unlink(missing_ok=True)

def sold() -> str:
    return counter.read_text()

def fail() -> None:
    raise OSError("the disk is full")
"""
COUNT = (
    *("rehearse", "shop:queue", "--task", "count", "--points", "1"),
    *("--before", "shop:reset", "--after", "shop:sold"),
)


@pytest.fixture(autouse=True)
def shop(app: Path) -> None:
    """A second application beside `app.py`."""
    (app / "shop.py").write_text(SHOP)


def test_a_task_that_bears_it_all_is_passed(
    run_cli: RunCli, redis_server: Server, key_prefix: str
) -> None:
    echo = ("rehearse", "app:queue", "--task", "echo", "--payload", '{"text": "hi"}')
    done = run_cli(*echo, "--points", "1", "--seed", "5")

    first, *verdicts, _, summary, hint = done.stdout.splitlines()
    assert first == "Rehearsing echo with seed 5"
    statuses = [line.split()[0] for line in verdicts]
    assert statuses == ["passed", "skipped", *["passed"] * 5]
    assert summary == "echo passed 6 stories (seed 5)"
    assert "give --after" in hint
    assert (done.returncode, done.stderr) == (0, "")
    # Its own queue is on this server, and was not touched.
    with Redis.from_url(redis_server.url) as redis:
        assert redis.keys(f"*{key_prefix}*") == []


def test_a_task_that_does_not_is_failed_with_what_happened(run_cli: RunCli) -> None:
    done = run_cli(*COUNT)

    lines = done.stdout.splitlines()
    at = lines.index("failed  run twice")
    assert lines[at + 1] == (
        "        It left something else behind: '2' instead of '1'."
    )
    assert "failed  report lost" in lines
    assert any(line.startswith("report lost: It had returned") for line in lines)
    assert lines[-1].startswith("shop.count failed ")
    assert done.returncode == 1


def test_a_terminal_has_colours_and_no_line_that_is_too_long(app: Path) -> None:
    terminal = PseudoTerminal(app, *COUNT, width=50)
    try:
        assert terminal.ended() == 1
        assert has_colours(terminal.output)
        shown = plain(terminal.output).splitlines()
        assert "failed  run twice" in shown
        assert max(map(len, shown)) <= 50
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("app:queue", "--task", "ecko"), "there is no task ecko. Did you mean echo?"),
        (("app:queue", "--task", "echo"), "argument 'text' is missing"),
        (("app:queue", "--task", "echo", "--payload", "{"), "is not valid JSON"),
        (("app:queue", "--task", "echo", "--payload", "1"), "must be a JSON object"),
        (("app:nothing", "--task", "echo"), "app has no nothing"),
        (("broken:queue", "--task", "echo"), "cannot import broken"),
        ((*COUNT[1:], "--before", "shop:resett"), "shop has no resett"),
        ((*COUNT[1:], "--after", "shop:counter"), "shop:counter is not a function"),
        ((*COUNT[1:], "--points", "0"), "points must be 1 to 1000"),
        ((*COUNT[1:], "--after", "shop:fail"), "raised OSError: the disk is full"),
    ],
)
def test_a_mistake_is_told_in_a_line(
    run_cli: RunCli, words: tuple[str, ...], message: str
) -> None:
    done = run_cli("rehearse", *words)

    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind_by_one_that_is_ended(
    start_cli: StartCli, app: Path, number: signal.Signals
) -> None:
    command = start_cli("rehearse", "app:queue", "--task", "patient")
    wait_until((app / "begun").exists, 30, "the task to begin")
    assert len(_processes_in(app)) > 2

    command.send_signal(number)
    command.wait(20)

    wait_until(lambda: not _processes_in(app), 20, "all processes to end")
    assert not (app / "ended").exists()


def _processes_in(folder: Path) -> list[int]:
    """Return the processes whose current folder it is."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found
