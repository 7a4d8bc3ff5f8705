"""`workstealing web`, as a real process with real requests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from redis import Redis

import workstealing
from workstealing import TaskQueue
from workstealing.cli.commands import workstealing as command
from workstealing.testing import Server

from .conftest import TOKEN

ROOT = Path(workstealing.__file__).parents[1]
_CODE = "from workstealing.cli.entry import main; main()"

Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin(redis_server: Server, tmp_path: Path) -> Iterator[Begin]:
    """Start `workstealing web …`; what still runs at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        known = {
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "WORKSTEALING_URL": redis_server.url,
        }
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE, "web", "--port", "0", *arguments],
            cwd=tmp_path,
            env={**os.environ, **known, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return where it listens, and the token that was printed."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, process.communicate(timeout=30)
    address, _, token = line.partition("#")
    return address.removesuffix("/").removesuffix("/login"), token


def test_the_printed_token_opens_the_dashboard_and_ctrl_c_ends_it(
    begin: Begin, redis_client: Redis, key_prefix: str
) -> None:
    TaskQueue(key_prefix, redis_client).end_input()
    process = begin()
    address, token = _address(process)

    with httpx.Client(base_url=address, headers={"Origin": address}) as browser:
        closed = browser.get("/")
        opened = browser.post(
            "/login", data={"token": token}, follow_redirects=True, timeout=30
        )
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)

    assert closed.status_code == 303
    assert f"{key_prefix}/default" in opened.text
    assert "server" not in opened.headers
    assert len(token) >= 32
    assert (process.returncode, output, errors) == (0, "", "")


def test_a_token_that_was_given_is_not_printed(
    begin: Begin, tmp_path: Path, key_prefix: str
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    by_file = begin("--token-file", "token", "--queue", key_prefix)
    by_variable = begin(WORKSTEALING_WEB_TOKEN=TOKEN)

    for process in (by_file, by_variable):
        address, printed = _address(process)
        answer = httpx.get(
            f"{address}/api/stat",
            params={"queue": key_prefix},
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=30,
        )
        assert printed == ""
        assert answer.json()["queue"] == key_prefix


def test_a_queue_of_an_application_is_shown_first(
    begin: Begin, tmp_path: Path, key_prefix: str
) -> None:
    code = f"from workstealing import TaskQueue\nqueue = TaskQueue({key_prefix!r})\n"
    (tmp_path / "app.py").write_text(code)
    process = begin("app:queue", WORKSTEALING_WEB_TOKEN=TOKEN)
    address, _ = _address(process)

    answer = httpx.get(
        f"{address}/api/stat",
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )

    assert answer.json()["queues"][0]["queue"] == key_prefix


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached by others: give a token"),
        (["--host", "192.0.2.1"], "can be reached by others"),
        (["--host", "example.com"], "can be reached by others"),
        (["--host", "::"], "can be reached by others"),
        (["--queue", "a b"], "the name of a queue must be"),
        (["--redis", "nonsense"], "a Redis URL starts with"),
        (["app"], "'app' must be APP:QUEUE"),
    ],
)
def test_bad_input_gets_one_clear_line_and_exit_code_two(
    redis_server: Server, arguments: list[str], message: str
) -> None:
    ended = CliRunner(
        env={"WORKSTEALING_URL": redis_server.url, "WORKSTEALING_WEB_TOKEN": None}
    ).invoke(command, ["web", *arguments])

    assert ended.exit_code == 2
    assert message in ended.output
    assert ended.output.count("\n") == 1


def test_a_short_token_is_refused(redis_server: Server, tmp_path: Path) -> None:
    for token in ("", "short"):
        (tmp_path / "token").write_text(token)

        ended = CliRunner(env={"WORKSTEALING_URL": redis_server.url}).invoke(
            command, ["web", "--port", "0", "--token-file", str(tmp_path / "token")]
        )

        assert ended.exit_code == 2
        assert "at least 16 characters" in ended.output
