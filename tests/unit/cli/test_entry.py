"""The command line begins politely, with or without its extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import workstealing
from workstealing.cli import commands
from workstealing.cli.commands import workstealing as group

ROOT = Path(workstealing.__file__).parents[1]


@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_its_extra_it_names_the_pip_command_in_one_line(package: str) -> None:
    hide = f"import sys; sys.modules[{package!r}] = None"
    start = "from workstealing.cli.entry import main; main()"

    ended = subprocess.run(
        [sys.executable, "-c", f"{hide}; {start}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert f"{package} is not installed" in ended.stderr
    assert "pip install 'workstealing[cli]'" in ended.stderr


def test_it_tells_its_version_and_its_commands() -> None:
    assert CliRunner().invoke(group, ["--version"]).output.startswith("workstealing")
    helped = CliRunner().invoke(group, ["--help"]).output
    assert all(command in helped for command in ("plan", "recruit"))


def test_it_calls_itself_by_its_name_however_it_is_started() -> None:
    start = "from workstealing.cli.entry import main; main()"

    ended = subprocess.run(
        [sys.executable, "-c", start, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0
    assert ended.stdout.startswith("Usage: workstealing ")


def started_by_a_shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell in which $PYTHON and $PLAN are known."""
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PYTHON": sys.executable, "PLAN": PLAN, "TERM": "dumb"},
    )


PLAN = (
    "plan --calls-day 100 --calls-night 10 --processes 2 --garbage 1 --batch 100"
    " --stale 60"
)
START = "from workstealing.cli.entry import main; main()"


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_may_be_closed(redirection: str) -> None:
    ended = started_by_a_shell(f'exec "$PYTHON" -c "{START}" $PLAN {redirection}')

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux has it")
def test_children_get_the_null_device_for_a_closed_stream() -> None:
    look = "import subprocess; subprocess.call(['readlink', '/proc/self/fd/2'])"
    code = f"try:\n {START}\nfinally: {look}"

    ended = started_by_a_shell(f'exec "$PYTHON" -c "{code}" --version 2>&-')

    assert ended.stdout.splitlines()[-1] == os.devnull


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
def test_output_that_cannot_be_written_is_an_error_in_one_line() -> None:
    ended = started_by_a_shell(f'exec "$PYTHON" -c "{START}" $PLAN > /dev/full')

    assert (ended.returncode, ended.stderr) == (
        1,
        "Error: the output could not be written: No space left on device\n",
    )


def test_it_can_be_run_as_a_module() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "workstealing", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0
    assert ended.stdout.startswith("Usage: workstealing ")


def test_who_looks_at_a_queue_does_not_wait_for_the_import_of_workers() -> None:
    start = "from workstealing.cli.commands import workstealing as group"
    look = "group(['queue', 'ls', '--help'], standalone_mode=False)"
    tell = "import sys; print(*sys.modules)"

    ended = subprocess.run(
        [sys.executable, "-c", f"{start}; {look}; {tell}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    imported = ended.stdout.split()
    assert "workstealing.cli.queue_command" in imported
    assert "workstealing.workers" not in imported


def test_who_interrupts_the_import_of_a_command_sees_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "import_module", interrupted)
    monkeypatch.setattr(group, "commands", {})

    ended = CliRunner().invoke(group, ["queue", "ls"])

    assert (ended.exit_code, ended.output) == (130, "")
