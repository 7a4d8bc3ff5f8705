"""`workstealing worker` for several queues, in real processes with real signals."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import Result

from workstealing import TaskQueue
from workstealing.testing import Server, wait_until

StartCli = Callable[..., "subprocess.Popen[str]"]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
RunCliHere = Callable[..., Result]
each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])

_MAIL = """
    import time
    from pathlib import Path
    from workstealing import TaskQueue

    mail = TaskQueue({name!r} + "-mail", {url!r})
    media = TaskQueue({name!r} + "-media", {url!r})

    def hold(name: str) -> str:
        Path(f"begun-{{name}}").touch()
        while not Path("go").exists():
            time.sleep(0.01)
        return name

    @mail.task(name="send")
    def send(name: str) -> str:
        return hold(name)

    @media.task(name="convert")
    def convert(name: str) -> str:
        return hold(name)
"""


@pytest.fixture
def queues(
    app: Path, redis_server: Server, key_prefix: str
) -> Iterator[tuple[Any, Any]]:
    """The tasks `send` and `convert`, each of a queue of its own."""
    code = dedent(_MAIL).format(name=key_prefix, url=redis_server.url)
    (app / "shop.py").write_text(code)
    mail = TaskQueue(f"{key_prefix}-mail", redis_server.url)
    media = TaskQueue(f"{key_prefix}-media", redis_server.url)

    @mail.task(name="send")
    def send(name: str) -> str:
        raise NotImplementedError

    @media.task(name="convert")
    def convert(name: str) -> str:
        raise NotImplementedError

    yield send, convert
    mail.close()
    media.close()


@each_kind
def test_all_queues_are_worked_until_they_are_empty(
    app: Path, queues: tuple[Any, Any], run_cli: RunCli, kind: str
) -> None:
    send, convert = queues
    (app / "go").touch()
    handles = [send.submit("a"), convert.submit("b")]

    ended = run_cli(
        *("worker", "shop:mail", "shop:media", "--until-empty", "--weights", "3,1"),
        *("--kind", kind, "--workers", "1", "--pool", "mill"),
    )

    assert ended.returncode == 0, ended.stderr
    assert [handle.result(timeout=5) for handle in handles] == ["a", "b"]
    first, *_, last = ended.stderr.splitlines()
    assert "-mail/default, " in first
    assert "tasks: send@1, convert@1" in first
    assert "pool mill ended: 2 tasks taken" in last


@each_kind
def test_after_a_signal_it_finishes_what_runs_in_each_queue(
    app: Path, queues: tuple[Any, Any], start_cli: StartCli, kind: str
) -> None:
    send, convert = queues
    handles = [send.submit("a"), convert.submit("b"), send.submit("c")]
    process = start_cli(
        *("worker", "shop:mail", "shop:media", "--kind", kind, "--workers", "2")
    )
    wait_until(lambda: len(list(app.glob("begun-*"))) == 2, 30, "two to begin")

    process.send_signal(signal.SIGTERM)
    wait_until(lambda: handles[2].state().state == "waiting", 20, "it to be back")
    (app / "go").touch()
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert [handle.result(timeout=5) for handle in handles[:2]] == ["a", "b"]
    assert handles[2].state().state == "waiting"


@each_kind
def test_a_second_signal_hands_back_what_runs_in_each_queue(
    app: Path, queues: tuple[Any, Any], start_cli: StartCli, kind: str
) -> None:
    send, convert = queues
    handles = [send.submit("a"), convert.submit("b")]
    process = start_cli(
        *("worker", "shop:mail", "shop:media", "--kind", kind, "--workers", "2")
    )
    wait_until(lambda: len(list(app.glob("begun-*"))) == 2, 30, "two to begin")

    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    wait_until(lambda: "send it again" in process.stderr.readline(), 20, "its answer")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)

    assert process.returncode == 128 + signal.SIGTERM
    assert [handle.state().state for handle in handles] == ["waiting", "waiting"]


def test_a_check_looks_at_each_queue(
    app: Path, queues: tuple[Any, Any], start_cli: StartCli, run_cli: RunCli
) -> None:
    both = ("shop:mail", "shop:media")
    send, _ = queues
    send.submit("a")
    start_cli("worker", "shop:mail", "--pool", "mill")
    wait_until(lambda: list(app.glob("begun-*")), 30, "it to begin")
    one = run_cli("worker", *both, "--check", "--pool", "mill")
    assert one.returncode == 1
    assert "-media/default" in one.stderr

    start_cli("worker", "shop:media", "--pool", "mill")

    wait_until(
        lambda: run_cli("worker", *both, "--check", "--pool", "mill").returncode == 0,
        30,
        "both to be alive",
    )


def test_a_check_by_name_looks_at_each_queue(
    queues: tuple[Any, Any], start_cli: StartCli, run_cli: RunCli, redis_server: Server
) -> None:
    media, mail = (task.queue for task in reversed(queues))
    where = ("worker", "--check", "--pool", "mill", "--redis", redis_server.url)
    start_cli("worker", "shop:mail", "--pool", "mill")
    wait_until(lambda: mail.counts().leases, 30, "the worker to join")

    both = run_cli(*where, "--queue", media.name, "--queue", mail.name)

    assert both.returncode == 1
    assert "-media/default" in both.stderr
    assert run_cli(*where, "--queue", mail.name).returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("shop:mail", "shop:mail"), "is given twice"),
        (("shop:mail", "--weights", "1"), "need several queues"),
        (("shop:mail", "--strict"), "need several queues"),
        (("shop:mail", "shop:media", "--weights", "3"), "--weights must be"),
        (("shop:mail", "shop:media", "--weights", "3,0"), "must be above 0"),
        (("shop:mail", "shop:media", "--weights", "much"), "like 3,1, got 'much'"),
        (("shop:mail", "shop:media", "--weights=3,1", "--strict"), "give --strict or"),
        (("shop:mail", "shop:sundry"), "shop has no sundry"),
        (("shop:mial", "shop:media"), "shop has no mial. Did you mean mail?"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    queues: tuple[Any, Any],
    run_cli_here: RunCliHere,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    refused = run_cli_here("worker", *words)

    assert refused.exit_code == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
