"""What people see on a real terminal of any width, and what a pipe gets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest
from click.testing import CliRunner

from workstealing import ExecutionContext, TaskQueue, WorkerPool
from workstealing.cli.commands import workstealing
from workstealing.inspecting import Inspector
from workstealing.testing import Server, wait_until

from .pseudo_terminal import ROOT, PseudoTerminal, has_colours, plain

WIDTHS = pytest.mark.parametrize("width", [50, 80, 200])
COMMANDS = (
    ("stat",),
    ("ls", "dead"),
    ("ls", "running"),
    ("why", "video-1"),
    ("cat", "nobody-has-this-one"),
)
Opened = Callable[..., PseudoTerminal]


class BusyQueue:
    """A queue with a task that runs, dead letters and a history."""

    def __init__(self, name: str, url: str) -> None:
        self.queue = TaskQueue(name, url)
        self.where = ("--queue", name, "--redis", url)
        self.go_on = Event()

        @self.queue.task(name="shop.transcode")
        def transcode(context: ExecutionContext, video: str) -> str:
            context.logger.warning("audio of %s drifts", video)
            context.progress(910, 1100, f"pass 1 of 1 over {video}")
            self.go_on.wait(600)
            return "transcoded"

        @self.queue.task(name="shop.caption")
        def caption() -> None:
            raise OSError(28, "No space left on device", "/scratch/holiday.part")

        self.transcode = transcode
        caption.submit_many([()] * 2)
        transcode.options(id="video-1", log=True).submit("holiday.mp4")
        self.pool = WorkerPool(self.queue, workers=2, name="media")
        self.pool.start()
        inspector = Inspector(self.queue)
        wait_until(
            lambda: (
                any(row.progress for row in inspector.ls("running"))
                and inspector.stat().dead == 2
                and bool(inspector.history(inspector.stat().now_ms).tasks)
            ),
            30,
            "a task that runs, dead letters and a history",
        )

    def close(self) -> None:
        self.go_on.set()
        self.pool.stop()
        self.queue.close()


@pytest.fixture(scope="module")
def busy(redis_server: Server) -> Iterator[BusyQueue]:
    """One for all who only look at it: it takes seconds to become busy and to stop."""
    busy = BusyQueue(f"busy-{uuid4().hex}", redis_server.url)
    yield busy
    busy.close()


@pytest.fixture
def ending(redis_server: Server, key_prefix: str) -> Iterator[BusyQueue]:
    """One for a test alone, which lets its task end."""
    ending = BusyQueue(key_prefix, redis_server.url)
    yield ending
    ending.close()


@pytest.fixture
def opened(app: Path) -> Iterator[Opened]:
    terminals: list[PseudoTerminal] = []

    def opened(*arguments: str, **options: object) -> PseudoTerminal:
        terminals.append(PseudoTerminal(app, *arguments, **options))  # type: ignore[arg-type]
        return terminals[-1]

    yield opened
    for terminal in terminals:
        terminal.close()


UNITS = ("ms", "s", "min")


@WIDTHS
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(
    opened: Opened, busy: BusyQueue, width: int
) -> None:
    for command in COMMANDS:
        terminal = opened("queue", *command, *busy.where, width=width)
        terminal.ended()
        shown = plain(terminal.output)
        piped = " ".join(_piped("queue", *command, *busy.where).split())

        for line in shown.splitlines():
            # One word that is wider than the terminal has a line of its own.
            assert len(line.rstrip()) <= width or len(line.split()) == 1, (
                command,
                line,
            )
        for word in shown.replace("─", " ").split():
            # Numbers may have changed meanwhile, and so may their units.
            may_differ = any(c.isdigit() for c in word) or word in UNITS
            assert word in piped or may_differ, (command, word)


@WIDTHS
def test_every_view_of_top_shows_all_it_has_at_any_width(
    opened: Opened, busy: BusyQueue, width: int
) -> None:
    terminal = opened("top", "--interval", "0.2", *busy.where, width=width)
    views = {
        "1": ("held back", "outcomes", "stolen/s", "failed/min", "█", "forgotten"),
        "2": ("video-1", "shop.transcode@1", "82.7 %", "pass 1 of 1", "media.0"),
        "3": ("shop.caption@1", "failed", "p50", "p95", "per min"),
        "4": ("media.0", "host", "pid", "stolen", "renewed"),
        "5": ("expire", "ago", "slices"),
    }

    # What is pressed before would be echoed.
    terminal.wait_for("q quit")
    for key, texts in views.items():
        terminal.press(key)
        frame = terminal.wait_for(*texts, "q quit")
        assert [
            line for line in frame.splitlines() if len(line.rstrip()) > width
        ] == [], key
    terminal.press("q")

    assert terminal.ended() == 0


def test_the_key_tab_goes_from_view_to_view(opened: Opened, busy: BusyQueue) -> None:
    terminal = opened("top", "--interval", "0.2", *busy.where)
    terminal.wait_for("done/min")

    terminal.press("\t")
    terminal.wait_for("82.7 %")
    terminal.press("\t\t\t\t")

    terminal.wait_for("done/min")


def test_a_page_that_is_longer_than_the_terminal_can_be_scrolled(
    opened: Opened, busy: BusyQueue
) -> None:
    terminal = opened("top", "--interval", "0.2", *busy.where, height=12, width=50)
    first = terminal.wait_for("more lines", "q quit")
    assert "forgotten" not in first

    terminal.press("\x1b[B" * 20 + "j" * 40)

    terminal.wait_for("forgotten", "↓ 0")


def test_colours_are_shown_on_a_terminal_only_and_as_its_user_wishes(
    opened: Opened, busy: BusyQueue
) -> None:
    for command in (
        ("queue", "stat"),
        ("queue", "ls", "dead"),
        ("queue", "why", "video-1"),
    ):
        shown = {}
        for name, value in (("X", "1"), ("NO_COLOR", "1"), ("TERM", "dumb")):
            terminal = opened(*command, *busy.where, env={name: value})
            assert terminal.ended() == 0
            shown[name] = has_colours(terminal.output)

        assert shown == {"X": True, "NO_COLOR": False, "TERM": False}
        assert "\x1b" not in _piped(*command, *busy.where)
        forced = _piped(*command, *busy.where, FORCE_COLOR="1")
        assert has_colours(forced)
        # It stays one row to a line.
        ends = len(_piped(*command, *busy.where).splitlines())
        assert len(forced.splitlines()) == ends


def test_top_on_a_dumb_terminal_prints_frames_below_each_other(
    opened: Opened, busy: BusyQueue
) -> None:
    terminal = opened("top", "--interval", "0.1", *busy.where, env={"TERM": "dumb"})

    terminal.wait_for("82.7 %", "p95", "media.0")

    assert "\x1b" not in terminal.output


def test_the_log_of_a_task_is_followed_to_its_end(
    opened: Opened, ending: BusyQueue
) -> None:
    terminal = opened("queue", "logs", "video-1", "-f", *ending.where)
    terminal.wait_for("audio of holiday.mp4 drifts")
    assert terminal.process.poll() is None

    ending.go_on.set()

    assert terminal.ended() == 0


def test_a_log_is_broken_between_words(opened: Opened, busy: BusyQueue) -> None:
    terminal = opened("queue", "logs", "video-1", *busy.where, width=40)

    assert terminal.ended() == 0
    lines = plain(terminal.output).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 40
    assert "audio of holiday.mp4 drifts" in " ".join(" ".join(lines).split())


def test_add_with_wait_shows_how_far_the_task_is(opened: Opened, app: Path) -> None:
    (app / "shown.py").write_text(_SHOWN)
    worker = opened("worker", "shown:queue", "--kind", "threads")
    terminal = opened("queue", "add", "shown:count", "--wait")

    terminal.wait_for("█████░░░░░ 50 %", "5 of 10, half")
    (app / "go").touch()

    assert terminal.ended() == 0
    assert plain(terminal.output).split()[-1] == '"counted"'
    worker.process.terminate()
    worker.ended()


def test_add_with_wait_prints_progress_to_stderr_in_a_pipe(
    opened: Opened, app: Path, redis_server: Server
) -> None:
    (app / "shown.py").write_text(_SHOWN)
    worker = opened("worker", "shown:queue")
    process = subprocess.Popen(
        [
            *(sys.executable, str(app / "bin" / "workstealing")),
            *("queue", "add", "shown:awaited", "--wait"),
        ],
        cwd=app,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "5 of 10, half\n"

    (app / "go").touch()
    output, _ = process.communicate(timeout=30)

    assert output == '"awaited"\n'
    worker.process.terminate()
    worker.ended()


def _piped(*arguments: str, **env: str) -> str:
    return CliRunner().invoke(workstealing, arguments, env=env).output


_SHOWN = """
import asyncio
import time
from pathlib import Path
from app import asynchronous, queue
from workstealing import ExecutionContext

@queue.task(name="count")
def count(context: ExecutionContext) -> str:
    context.progress(5, 10, "half")
    while not Path("go").exists():
        time.sleep(0.01)
    return "counted"

@queue.task(name="awaited-here")
def _run(context: ExecutionContext) -> str:
    context.progress(5, 10, "half")
    while not Path("go").exists():
        time.sleep(0.01)
    return "awaited"

@asynchronous.task(name="awaited-here")
async def awaited(context: ExecutionContext) -> str:
    raise NotImplementedError
"""
