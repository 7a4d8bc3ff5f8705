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
from click.testing import Result

from workstealing import TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.inspecting import Inspector
from workstealing.testing import Server, wait_until

StartCli = Callable[..., "subprocess.Popen[str]"]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
RunCliHere = Callable[..., Result]
each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    queue = TaskQueue(key_prefix, redis_server.url)

    @queue.task(name="echo")
    def echo(text: str, times: int = 1) -> dict[str, str]:
        raise NotImplementedError

    @queue.task(name="fail")
    def fail() -> None:
        raise NotImplementedError

    @queue.task(name="patient")
    def patient() -> str:
        raise NotImplementedError

    yield queue
    queue.close()


def submit(queue: TaskQueue, name: str, *ids: str, **payload: object) -> None:
    definition = queue.registry.find(name, 1)
    encoded = definition.signature.encode((), payload)
    from workstealing.tasks.submission import SubmitOptions

    flow = internals_of(queue).submit(
        definition, [encoded] * len(ids), SubmitOptions(), ids
    )
    internals_of(queue).driver.run(flow)


def change_code(app: Path) -> None:
    """Let `echo` shout; in a file of another size, or Python takes it for the same."""
    code = (app / "app.py").read_text()
    (app / "app.py").write_text(code.replace("text * times", "(text * times).upper()"))


@pytest.mark.parametrize(
    ("kind", "worker"),
    [("threads", "mill.0"), ("asyncio", "mill.0"), ("processes", "mill.1")],
)
def test_a_pool_runs_until_nothing_is_left(
    queue: TaskQueue, run_cli: RunCli, kind: str, worker: str
) -> None:
    submit(queue, "echo", "a", "b", text="hi")

    ended = run_cli(
        *("worker", "app:queue", "--until-empty", "--pool", "mill"),
        *("--kind", kind, "--workers", "2", "--stop-timeout", "5", "--batch", "10"),
    )

    assert ended.returncode == 0, ended.stderr
    assert queue.handle("b").result(timeout=5) == {"said": "hi"}
    assert queue.handle("b").state().worker in ("mill.0", worker)
    first, *_, last = ended.stderr.splitlines()
    assert f"starting pool mill of {queue.name}/default" in first
    assert f"({kind}); tasks: echo@1, fail@1, patient@1" in first
    assert "pool mill ended: 2 tasks taken" in last
    assert ended.stdout == ""
    assert queue.counts().leases == {}


@pytest.mark.parametrize("option", ["--until-empty", "--until-empty=all"])
def test_until_empty_may_stand_before_the_queue_and_name_what_to_wait_for(
    queue: TaskQueue, run_cli: RunCli, option: str
) -> None:
    submit(queue, "echo", "a", text="hi")

    ended = run_cli("worker", option, "app:queue")

    assert ended.returncode == 0, ended.stderr
    assert queue.handle("a").result(timeout=5) == {"said": "hi"}


def test_until_empty_leaves_tasks_that_are_due_later(
    queue: TaskQueue, run_cli: RunCli
) -> None:
    run_cli("queue", "add", "app:echo", "text=hi", "--id=later", "--in=3600")

    ended = run_cli("worker", "app:queue", "--until-empty")

    assert ended.returncode == 0, ended.stderr
    assert queue.handle("later").state().state == "delayed"


def test_until_empty_of_all_waits_for_tasks_that_are_due_later(
    queue: TaskQueue, run_cli: RunCli
) -> None:
    run_cli("queue", "add", "app:echo", "text=hi", "--id=later", "--in=3")

    ended = run_cli("worker", "app:queue", "--until-empty=all")

    assert ended.returncode == 0, ended.stderr
    assert queue.handle("later").state().state == "done"


@each_kind
def test_each_finished_task_is_a_line_and_a_given_up_one_an_error_with_traceback(
    queue: TaskQueue, run_cli: RunCli, kind: str
) -> None:
    submit(queue, "echo", "good", text="hi")
    submit(queue, "fail", "bad")

    ended = run_cli("worker", "app:queue", "--until-empty", "--kind", kind)

    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.splitlines()
    done = [line for line in lines if "task good (echo@1) done in" in line]
    given_up = [line for line in lines if "task bad (fail@1)" in line]
    assert len(done) == len(given_up) == 1
    assert " INFO " in done[0]
    assert " ERROR " in given_up[0]
    assert ended.stderr.count("Traceback (most recent call last)") == 1
    assert 'raise ValueError("not today")' in ended.stderr
    assert "ended:" in lines[-1]


@each_kind
def test_a_quiet_worker_says_nothing_while_all_is_well(
    queue: TaskQueue, run_cli: RunCli, kind: str
) -> None:
    submit(queue, "echo", "a", text="hi")

    ended = run_cli("worker", "app:queue", "--until-empty", "--quiet", "--kind", kind)

    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "")


def test_ctrl_c_while_children_import_prints_no_traceback(
    start_cli: StartCli, app: Path
) -> None:
    # The parent imports it too, before it has children: only they are to take long.
    (app / "slow.py").write_text(
        "import multiprocessing, time\n"
        "from pathlib import Path\n"
        "if multiprocessing.parent_process() is not None:\n"
        "    Path('importing').touch()\n"
        "    time.sleep(1)\n"
        "from app import queue\n"
    )
    process = start_cli(
        *("worker", "slow:queue", "--kind=processes", "--workers=2"),
        start_new_session=True,
    )
    wait_until((app / "importing").exists, 30, "the children to import")

    # As a terminal does: to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "KeyboardInterrupt" not in errors


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_idle_moments_are_for_the_side_work_of_a_recruiter(
    start_cli: StartCli, app: Path, kind: str
) -> None:
    worker = start_cli(
        "worker", "app:queue", "--kind", kind, "--recruiter", "app:recruiter"
    )

    wait_until((app / "swept").exists, 20, "some side work")
    worker.terminate()
    assert worker.wait(20) == 0


@pytest.mark.parametrize(
    ("where", "kind", "problem"),
    [
        ("app:queue", "threads", "is a TaskQueue, not a Recruiter"),
        ("app:nobody", "threads", "app has no nobody"),
        ("app:recruiter", "processes", "no idle moments"),
    ],
)
def test_a_recruiter_that_is_none_or_has_no_use_is_refused(
    run_cli: RunCli, where: str, kind: str, problem: str
) -> None:
    ended = run_cli("worker", "app:queue", "--kind", kind, "--recruiter", where)

    assert ended.returncode == 2
    assert problem in " ".join(ended.stderr.split())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@each_kind
def test_promise_8_a_signal_lets_what_runs_finish_and_takes_no_more(
    queue: TaskQueue, start_cli: StartCli, app: Path, number: signal.Signals, kind: str
) -> None:
    submit(queue, "patient", "running")
    process = start_cli(
        "worker", "app:queue", "--pool=mill", "--workers=1", "--kind", kind
    )
    wait_until((app / "begun").exists, 30, "the task to begin")
    submit(queue, "echo", "waiting", text="hi")

    process.send_signal(number)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any(f"{number.name}: finishing running tasks" in line for line in lines)
    (app / "go").touch()
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert queue.handle("running").result(timeout=5) == "waited"
    assert queue.handle("waiting").state().state == "waiting"
    assert queue.counts().leases == {}
    assert "Traceback" not in errors


@each_kind
def test_what_runs_beyond_the_deadline_is_handed_back_and_the_exit_code_says_so(
    queue: TaskQueue, start_cli: StartCli, app: Path, kind: str
) -> None:
    submit(queue, "patient", "running")
    process = start_cli("worker", "app:queue", "--stop-timeout=0.1", "--kind", kind)
    wait_until((app / "begun").exists, 30, "the task to begin")

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 1, errors
    assert queue.handle("running").state().state == "waiting"
    assert (queue.counts().leases, queue.counts().assigned) == ({}, 0)
    assert not (app / "ended").exists()


def test_a_hang_up_lets_threads_begin_anew_with_the_new_code(
    queue: TaskQueue, start_cli: StartCli, app: Path
) -> None:
    process = start_cli("worker", "app:queue", "--pool", "mill")
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")
    change_code(app)

    process.send_signal(signal.SIGHUP)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any("then restarting with the new code" in line for line in lines)
    # The same process, which starts once more.
    assert any(f"as process {process.pid} " in line for line in lines)
    submit(queue, "echo", "a", text="hi")
    assert queue.handle("a").result(timeout=20) == {"said": "HI"}

    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def test_a_hang_up_replaces_processes_that_see_the_new_code(
    queue: TaskQueue, start_cli: StartCli, app: Path
) -> None:
    process = start_cli(
        *("worker", "app:queue", "--pool", "mill"),
        *("--kind", "processes", "--workers", "1"),
    )
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")
    (before,) = (worker.pid for worker in Inspector(queue).stat().workers)
    change_code(app)

    process.send_signal(signal.SIGHUP)

    def are_others() -> bool:
        pids = [worker.pid for worker in Inspector(queue).stat().workers]
        return bool(pids) and before not in pids

    wait_until(are_others, 30, "another process")
    submit(queue, "echo", "a", text="hi")
    assert queue.handle("a").result(timeout=20) == {"said": "HI"}
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def test_with_reload_a_changed_file_is_a_hang_up(
    queue: TaskQueue, start_cli: StartCli, app: Path
) -> None:
    process = start_cli("worker", "app:queue", "--reload")
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")

    change_code(app)

    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    assert any("app.py changed: reloading" in line for line in lines)
    assert any("starting pool" in line for line in lines)
    submit(queue, "echo", "a", text="hi")
    assert queue.handle("a").result(timeout=20) == {"said": "HI"}


def test_with_reload_a_broken_file_leaves_the_old_code_at_work(
    queue: TaskQueue, start_cli: StartCli, app: Path
) -> None:
    process = start_cli("worker", "app:queue", "--reload")
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")

    with (app / "app.py").open("a") as code:
        code.write("\nprint(\n")

    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    line = next(line for line in lines if "app.py changed" in line)
    assert "keeping the old code: SyntaxError: '(' was never closed" in line
    submit(queue, "echo", "a", text="hi")
    assert queue.handle("a").result(timeout=20) == {"said": "hi"}


def test_a_pool_scales_by_itself_between_two_numbers(
    queue: TaskQueue, start_cli: StartCli, app: Path
) -> None:
    submit(queue, "patient", *(str(n) for n in range(30)))

    process = start_cli(
        "worker", "app:queue", "--workers=1", "--autoscale=2:3", "--idle=5"
    )

    def is_three() -> bool:
        return Inspector(queue).stat().running == 3

    wait_until(is_three, 30, "three to run at once")
    (app / "go").touch()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "from 2 to 3 workers" in errors


def test_processes_are_replaced_after_some_tasks(
    queue: TaskQueue, run_cli: RunCli
) -> None:
    submit(queue, "echo", "a", "b", "c", text="hi")

    ended = run_cli(
        *("worker", "app:queue", "--until-empty", "--kind", "processes"),
        *("--workers", "1", "--max-tasks", "2", "--max-memory", "4000"),
    )

    assert ended.returncode == 0, ended.stderr
    assert queue.counts().stats["done"] == 3
    assert "died" not in ended.stderr


def test_a_check_says_whether_a_worker_is_alive_without_any_code(
    queue: TaskQueue, run_cli: RunCli, start_cli: StartCli, redis_server: Server
) -> None:
    check = ("worker", "--check", "--queue", queue.name, "--redis", redis_server.url)
    dead = run_cli(*check)
    start_cli("worker", "app:queue", "--pool", "mill")
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")

    assert dead.returncode == 1
    assert "no worker of host" in dead.stderr
    alive = run_cli(*check, "--pool", "mill")
    assert (alive.returncode, alive.stdout) == (0, "alive: mill.0\n")
    other = run_cli(*check, "--pool", "other")
    assert other.returncode == 1
    assert "no worker of pool other is alive" in other.stderr
    bad = run_cli(*check, "nonsense")
    assert bad.returncode == 2
    assert "unexpected: nonsense" in bad.stderr


def test_a_signal_ends_a_worker_that_rests(
    queue: TaskQueue, start_cli: StartCli
) -> None:
    process = start_cli("worker", "app:queue")
    wait_until(lambda: queue.counts().leases, 30, "the worker to join")

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert queue.counts().leases == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@each_kind
def test_promise_8_a_second_signal_hands_back_what_runs_with_the_code_of_the_signal(
    queue: TaskQueue, start_cli: StartCli, app: Path, number: signal.Signals, kind: str
) -> None:
    submit(queue, "patient", "running")
    process = start_cli("worker", "app:queue", "--kind", kind, "--workers=1")
    assert process.stderr is not None
    wait_until((app / "begun").exists, 30, "the task to begin")

    process.send_signal(number)
    lines = iter(process.stderr.readline, "")
    assert any("finishing running tasks" in line for line in lines)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 128 + number
    assert f"{number.name} again: stopping at once" in errors
    assert not (app / "ended").exists()
    assert queue.handle("running").state().state == "waiting"
    assert (queue.counts().leases, queue.counts().assigned) == ({}, 0)
    # No attempt was counted.
    (app / "go").touch()
    start_cli("worker", "app:queue", "--until-empty").communicate(timeout=30)
    assert queue.handle("running").state().attempt == 1


def test_a_worker_serves_the_tasks_of_an_asyncio_queue(run_cli: RunCli) -> None:
    added = run_cli("queue", "add", "app:awaited", "number=1", "--id", "one")
    assert added.returncode == 0, added.stderr

    ended = run_cli("worker", "app:asynchronous", "--until-empty")

    assert ended.returncode == 0, ended.stderr
    assert "tasks: awaited@1" in ended.stderr
    waited = run_cli("queue", "add", "app:awaited", "number=1", "--id=one", "--wait")
    assert (waited.stdout, waited.returncode) == ("2\n", 0)


def test_on_a_terminal_a_progress_line_shows_how_it_is_getting_on(
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
        while b"1 of 4 running, 0 stolen" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGTERM)
        (app / "go").touch()
        while b"ended: 1 task taken" not in shown:
            shown += os.read(ours, 4096)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)

    assert b"tasks/s, 0 waiting, 1 of 4 running, 0 stolen, 0 reassigned" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app"], "'app' must be APP:QUEUE, like app:queue"),
        (["nowhere:queue"], "cannot import nowhere"),
        (["broken:queue"], "cannot import broken: ZeroDivisionError"),
        (["app:nobody"], "app has no nobody"),
        (["app:time"], "app:time is a module, not a TaskQueue or AsyncTaskQueue"),
        (["app:empty"], "no tasks are defined for the queue"),
        (["app:queue", "--batch", "0"], "batch must be 1 to"),
        (["app:queue", "--workers", "0"], "workers must be 1 or more"),
        (
            ["app:queue", "--autoscale", "many"],
            "--autoscale must be LEAST:MOST, like 2:32",
        ),
        (["app:queue", "--autoscale", "3:2"], "most must be >= least"),
        (["app:queue", "--backlog", "3"], "--wait, --backlog and --idle need"),
        (["app:queue", "--wait", "3"], "--wait, --backlog and --idle need"),
        (["app:queue", "--autoscale", "1:2", "--wait", "0"], "wait must be"),
        (["app:queue", "--autoscale", "1:2", "--backlog", "0"], "backlog must be 1"),
        (
            ["app:queue", "--until-empty=soon"],
            "--until-empty must have no value, or =all",
        ),
        (["app:queue", "--quiet", "-v"], "give --quiet or --verbose, not both"),
        (["app:queue", "--max-tasks", "3"], "mean nothing to threads"),
        (["app:queue", "--stop-timeout", "-1"], "the timeout must be"),
        (["--queue", "name"], "a worker needs the code of its tasks"),
        (["app:queue", "--check", "more"], "'more' must be APP:QUEUE"),
        (["app:queue", "--pool", "a b"], "the name of a pool must be"),
    ],
)
def test_bad_input_gets_one_clear_line_and_exit_code_two(
    run_cli_here: RunCliHere, arguments: list[str], message: str
) -> None:
    ended = run_cli_here("worker", *arguments)

    assert ended.exit_code == 2
    assert ended.stderr.startswith("Error: ")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_process_that_got_bad_input_ends_with_its_exit_code(run_cli: RunCli) -> None:
    ended = run_cli("worker", "app:nobody")

    assert ended.returncode == 2
    assert ended.stderr == "Error: app has no nobody\n"
