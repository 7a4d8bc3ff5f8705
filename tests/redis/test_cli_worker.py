"""`workstealing worker`, in real processes with real signals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workstealing import TaskQueue
from workstealing.testing import Server, wait_until

Begin = Callable[..., "subprocess.Popen[str]"]
Told = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(key_prefix, redis_server.url)

    @queue.task(name="echo")
    def echo(text: str, times: int = 1) -> dict[str, str]:
        raise NotImplementedError

    @queue.task(name="patient")
    def patient() -> str:
        raise NotImplementedError

    yield queue
    queue.driver.close()
    queue.driver.client.close()


def submit(queue: TaskQueue, name: str, *ids: str, **payload: object) -> None:
    definition = queue.registry.find(name, 1)
    encoded = definition.signature.encode((), payload)
    from workstealing.client.giving import SubmitOptions

    flow = queue.giving.submit(definition, [encoded] * len(ids), SubmitOptions(), ids)
    queue.driver.run(flow)


def test_a_worker_runs_until_nothing_is_left(queue: TaskQueue, told: Told) -> None:
    submit(queue, "echo", "a", "b", text="hi")

    ended = told("worker", "app:queue", "--until-empty", "--pool", "mill", "--index=3")

    assert ended.returncode == 0, ended.stderr
    assert queue.handle("b").result(timeout=5) == {"said": "hi"}
    assert queue.handle("b").state().worker == "mill.3"
    first, *_, last = ended.stderr.splitlines()
    assert f"worker mill.3 of {queue.name}/default starts" in first
    assert "it can run echo@1, fail@1, patient@1" in first
    assert "worker mill.3 ends: 2 tasks taken" in last
    assert ended.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_runs_finish_and_hands_back_what_waits(
    queue: TaskQueue, begin: Begin, app: Path, number: signal.Signals
) -> None:
    submit(queue, "patient", "running")
    process = begin("worker", "app:queue", "--pool", "mill")
    wait_until((app / "begun").exists, 30, "the task to begin")
    submit(queue, "echo", "waiting", text="hi")

    process.send_signal(number)
    (app / "go").touch()
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert queue.handle("running").result(timeout=5) == "waited"
    assert queue.handle("waiting").state().state == "waiting"
    assert queue.counts().leases == {}
    assert f"{number.name}: finishing what runs" in errors
    assert "Traceback" not in errors


def test_a_signal_ends_a_worker_that_rests(queue: TaskQueue, begin: Begin) -> None:
    process = begin("worker", "app:queue")
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert queue.counts().leases == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once_with_the_code_of_the_signal(
    queue: TaskQueue, begin: Begin, app: Path, number: signal.Signals
) -> None:
    submit(queue, "patient", "running")
    process = begin("worker", "app:queue")
    assert process.stderr is not None
    wait_until((app / "begun").exists, 30, "the task to begin")

    process.send_signal(number)
    lines = iter(process.stderr.readline, "")
    assert any("finishing what runs" in line for line in lines)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 128 + number
    assert f"{number.name} again: ended at once" in errors
    assert not (app / "ended").exists()
    assert queue.handle("running").state().state == "running"


def test_a_worker_serves_the_tasks_of_an_asyncio_queue(told: Told) -> None:
    added = told("queue", "add", "app:awaited", "number=1", "--id", "one")
    assert added.returncode == 0, added.stderr

    ended = told("worker", "app:asynchronous", "--until-empty")

    assert ended.returncode == 0, ended.stderr
    assert "it can run awaited@1" in ended.stderr
    waited = told("queue", "add", "app:awaited", "number=1", "--id=one", "--wait")
    assert (waited.stdout, waited.returncode) == ("2\n", 0)


def test_on_a_terminal_a_live_line_tells_how_it_is_getting_on(
    queue: TaskQueue, app: Path
) -> None:
    submit(queue, "patient", "running")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(app / "bin" / "workstealing"), "worker", "app:queue"],
        cwd=app,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "TERM": "xterm",
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        shown = b""
        while b"1 running, 0 stolen" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGTERM)
        (app / "go").touch()
        while b"ends: 1 task taken" not in shown:
            shown += os.read(ours, 4096)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)

    assert b"tasks/s, 0 waiting, 1 running, 0 stolen" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app"], "'app' is not APP:QUEUE, like app:queue"),
        (["nowhere:queue"], "cannot import nowhere"),
        (["broken:queue"], "cannot import broken: ZeroDivisionError"),
        (["app:nobody"], "app has no nobody"),
        (["app:time"], "app:time is a module, not a TaskQueue or AsyncTaskQueue"),
        (["app:empty"], "has no tasks here"),
        (["app:queue", "--batch", "0"], "batch must be 1 to"),
        (["app:queue", "--index", "-1"], "index must be 0 to"),
        (["app:queue", "--pool", "a b"], "the name of a pool must be"),
    ],
)
def test_bad_input_gets_one_clear_line_and_exit_code_two(
    told: Told, arguments: list[str], message: str
) -> None:
    ended = told("worker", *arguments)

    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: ")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
