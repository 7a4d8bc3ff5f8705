"""What stories about the command line share: an application, and real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

import workstealing
from workstealing.cli.commands import workstealing as command
from workstealing.testing import Server

ROOT = Path(workstealing.__file__).parents[1]

StartCli = Callable[..., "subprocess.Popen[str]"]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
RunCliHere = Callable[..., Result]

# A script in a folder of its own, as pip installs it: the current folder is not on the
# path by itself.
_SCRIPT = """
from workstealing.cli.entry import main

if __name__ == "__main__":
    main()
"""

_APP = """
    import time
    from pathlib import Path
    from workstealing import AsyncTaskQueue, Recruiter, TaskQueue

    recruiter = Recruiter()
    recruiter.install(Path("swept").touch, "sweep", rate=1.0)

    queue = TaskQueue({name!r}, {url!r})
    asynchronous = AsyncTaskQueue({name!r}, {url!r})
    empty = TaskQueue({name!r}, {url!r})

    @queue.task(name="echo")
    def echo(text: str, times: int = 1) -> dict[str, str]:
        return {{"said": text * times}}

    @queue.task(name="fail")
    def fail() -> None:
        raise ValueError("not today")

    @queue.task(name="patient")
    def patient() -> str:
        Path("begun").touch()
        while not Path("go").exists():
            time.sleep(0.01)
        Path("ended").touch()
        return "waited"

    @asynchronous.task(name="awaited")
    async def awaited(number: int) -> int:
        return number + 1
"""


@pytest.fixture
def app(tmp_path: Path, redis_server: Server, key_prefix: str) -> Path:
    """A folder with an application, `app.py`; its queue is named by `key_prefix`."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "workstealing").write_text(_SCRIPT)
    code = dedent(_APP).format(name=key_prefix, url=redis_server.url)
    (tmp_path / "app.py").write_text(code)
    (tmp_path / "broken.py").write_text("queue = 1 / 0\n")
    return tmp_path


@pytest.fixture
def start_cli(app: Path, redis_server: Server) -> Iterator[StartCli]:
    """Start `workstealing …` in the folder; what still runs at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def start_cli(
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        start_new_session: bool = False,
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(app / "bin" / "workstealing"), *arguments],
            cwd=app,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "WORKSTEALING_URL": redis_server.url,
            },
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=start_new_session,
        )
        begun.append(process)
        return process

    yield start_cli
    for process in begun:
        if process.poll() is None:
            process.kill()
        # The children of a pool that was killed finish what they run, with its pipes.
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def run_cli(start_cli: StartCli) -> RunCli:
    """Run `workstealing …` to its end."""

    def run_cli(*arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        process = start_cli(*arguments, stdin=subprocess.PIPE)
        output, errors = process.communicate(answer, timeout=30)
        words: Sequence[str] = arguments
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    return run_cli


@pytest.fixture
def run_cli_here(app: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunCliHere]:
    """Run `workstealing …` in this process, where a new one would say the same."""
    monkeypatch.chdir(app)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield lambda *arguments: CliRunner().invoke(command, arguments)
    for file in app.glob("*.py"):
        sys.modules.pop(file.stem, None)
