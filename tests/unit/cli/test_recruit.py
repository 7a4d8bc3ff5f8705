"""`workstealing recruit`, in real processes with real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

import workstealing

ROOT = Path(workstealing.__file__).parents[1]

TWO_JOBS = """
    from pathlib import Path
    from workstealing import Duty, Recruiter

    recruiter = Recruiter()
    diary = Path("diary")

    @recruiter.job(rate=0.001)
    def sweep():
        with diary.open("a") as file:
            file.write("swept\\n")

    @recruiter.job(every=3600)
    def look():
        return Duty.DISMISSED
"""


def test_one_round_does_a_slice_of_each_job_and_tells_so(tmp_path: Path) -> None:
    write(tmp_path, TWO_JOBS)

    ended = recruit(tmp_path, "app:recruiter")

    assert ended.returncode == 0, ended.stderr
    assert [line.split(",")[0] for line in ended.stdout.splitlines()] == [
        "sweep: recruited",
        "look: empty",
    ]
    assert (tmp_path / "diary").read_text() == "swept\n"


def test_once_is_the_default(tmp_path: Path) -> None:
    write(tmp_path, TWO_JOBS)

    assert recruit(tmp_path, "app:recruiter", "--once").returncode == 0
    assert (tmp_path / "diary").read_text() == "swept\n"


def test_a_line_tells_the_seconds_of_the_slice(tmp_path: Path) -> None:
    write(tmp_path, TWO_JOBS)

    first = recruit(tmp_path, "app:recruiter").stdout.splitlines()[0]

    seconds, unit = first.rsplit(", ", 1)[1].split()
    assert unit == "s"
    assert 0 <= float(seconds) < 60


def test_a_job_that_fails_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        from workstealing import Recruiter
        recruiter = Recruiter()

        @recruiter.job(rate=0.1)
        def breaks():
            raise ValueError("no such luck")

        @recruiter.job(rate=0.1)
        def works():
            pass
        """,
    )

    ended = recruit(tmp_path, "app:recruiter")

    assert ended.returncode == 1
    assert "breaks: error" in ended.stdout
    assert "works: recruited" in ended.stdout
    assert "no such luck" in ended.stderr


def test_a_job_of_rate_zero_is_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        from workstealing import Recruiter
        recruiter = Recruiter()
        recruiter.install(lambda: None, "off", rate=0.0)
        recruiter.install(lambda: None, "on", rate=0.1)
        """,
    )

    ended = recruit(tmp_path, "app:recruiter")

    assert ended.returncode == 0
    assert "off" not in ended.stdout
    assert "on: recruited" in ended.stdout


def test_setup_functions_install_their_jobs_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        from workstealing import Recruiter
        recruiter = Recruiter()

        @recruiter.setup
        def install_jobs(recruiter):
            recruiter.install(lambda: None, "late", rate=0.1)
            recruiter.install(lambda: None, "later", rate=0.1)
        """,
    )

    ended = recruit(tmp_path, "app:recruiter")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("recruited") == 2


def test_a_setup_function_that_fails_is_not_taken_for_success(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        from workstealing import Recruiter
        recruiter = Recruiter()
        recruiter.install(lambda: None, "fine", rate=0.1)

        @recruiter.setup
        def install_jobs(recruiter):
            raise OSError("not today")
        """,
    )

    ended = recruit(tmp_path, "app:recruiter")

    assert ended.returncode == 1
    assert "fine: recruited" in ended.stdout
    assert "not today" in ended.stderr


def test_a_recruiter_without_jobs_is_not_taken_for_success(tmp_path: Path) -> None:
    write(tmp_path, "from workstealing import Recruiter; recruiter = Recruiter()")

    ended = recruit(tmp_path, "app:recruiter")

    assert ended.returncode == 1
    assert "this recruiter has no jobs" in ended.stderr


def test_an_async_recruiter_is_awaited(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import asyncio
        from workstealing import AsyncRecruiter

        class App:
            recruiter = AsyncRecruiter()

        @App.recruiter.job(rate=0.1)
        async def sweep():
            await asyncio.sleep(0)
        """,
    )

    ended = recruit(tmp_path, "app:App.recruiter")

    assert ended.returncode == 0, ended.stderr
    assert "sweep: recruited" in ended.stdout


def test_a_plain_job_may_run_an_event_loop_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import asyncio
        from workstealing import Recruiter
        recruiter = Recruiter()

        @recruiter.job(rate=0.1)
        def sweep():
            asyncio.run(asyncio.sleep(0))
        """,
    )

    assert "sweep: recruited" in recruit(tmp_path, "app:recruiter").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_loop_goes_round_until_a_signal_ends_it_cleanly(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, TWO_JOBS)

    with recruiting(tmp_path, "app:recruiter", "--every", "0.05") as process:
        wait_for(lambda: lines(tmp_path / "diary") >= 3)
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert errors == ""
    assert output.count("sweep: recruited") == lines(tmp_path / "diary")
    assert "look" not in output


def test_a_signal_does_not_wait_for_the_next_round(tmp_path: Path) -> None:
    write(tmp_path, TWO_JOBS)

    with recruiting(tmp_path, "app:recruiter", "--every", "3600") as process:
        wait_for(lambda: lines(tmp_path / "diary") == 1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)

    assert process.returncode == 0


def test_a_signal_lets_the_slice_in_flight_finish(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import time
        from pathlib import Path
        from workstealing import Recruiter
        recruiter = Recruiter()

        @recruiter.job(rate=0.1)
        def patient():
            Path("begun").touch()
            while not Path("go").exists():
                time.sleep(0.01)
            Path("ended").touch()
        """,
    )

    with recruiting(tmp_path, "app:recruiter", "--every", "1") as process:
        wait_for((tmp_path / "begun").exists)
        process.send_signal(signal.SIGTERM)
        (tmp_path / "go").touch()
        process.communicate(timeout=30)

    assert process.returncode == 0
    assert (tmp_path / "ended").exists()


def test_a_loop_survives_a_job_that_fails(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        from pathlib import Path
        from workstealing import Recruiter
        recruiter = Recruiter()

        @recruiter.job(rate=0.1)
        def breaks():
            with Path("diary").open("a") as file:
                file.write("tried\\n")
            raise ValueError

        recruiter.install(lambda: None, "fine", rate=0.1)
        """,
    )

    with recruiting(tmp_path, "app:recruiter", "--every", "0.05") as process:
        wait_for(lambda: lines(tmp_path / "diary") >= 2)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert output.count("fine: recruited") >= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app"], "'app' must be MODULE:RECRUITER"),
        (["nowhere:recruiter"], "cannot import nowhere"),
        (["app:nobody"], "app has no nobody"),
        (["app:diary"], "Path, not a Recruiter or AsyncRecruiter"),
        (["app:recruiter", "--every", "0"], "every"),
        (["app:recruiter", "--every", "nan"], "every"),
        (
            ["app:recruiter", "--every", "5", "--once"],
            "give --once or --every, not both",
        ),
    ],
)
def test_bad_input_gets_a_clear_message_and_exit_code_two(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path, TWO_JOBS)

    ended = recruit(tmp_path, *arguments)

    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "diary").exists()


def write(folder: Path, code: str) -> None:
    (folder / "app.py").write_text(dedent(code))


def recruit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with recruiting(folder, *arguments) as process:
        output, errors = process.communicate(timeout=30)
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


@contextmanager
def recruiting(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    # A script in a folder of its own, as pip installs it: the current folder is not
    # on the path by itself.
    script = folder / "bin" / "workstealing"
    script.parent.mkdir()
    script.write_text("from workstealing.cli.entry import main\nmain()\n")
    process = subprocess.Popen(
        [sys.executable, str(script), "recruit", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0
