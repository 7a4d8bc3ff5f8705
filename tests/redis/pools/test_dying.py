"""Workers that exit, crash, grow too large or lose their parent: nothing is lost.

A pool of threads or coroutines dies with its process; then another one goes on, when
the lease has ended. Processes are replaced by their parent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workstealing import WorkStealer
from workstealing._logs import flush_logs
from workstealing.errors import TaskDead
from workstealing.inspecting import Inspector
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until
from workstealing.workers.child_protocol import ExitCode
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]
Script = Callable[..., "subprocess.Popen[str]"]

_RUN = """
    from workstealing.workers.worker_pool import WorkerPool
    from APP import queue

    if __name__ == "__main__":
        pool = WorkerPool(queue, 2, {kind!r}, name="mill", start_method={method!r})
        pool.start()
        {then}
"""


def running(kind: str, then: str = "pool.wait()", method: str = "spawn") -> str:
    return _RUN.format(kind=kind, then=then, method=method)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def assert_all_done_once(app: Any, number: int, dead: int = 0) -> None:
    counts = app.queue.counts()
    assert (counts.stats["done"], counts.stats.get("dead", 0)) == (number, dead)
    assert (counts.unfinished, counts.assigned) == (0, 0)


@pytest.mark.parametrize("task", ["leave", "crash"])
def test_a_process_that_ends_in_a_task_is_replaced_and_nothing_is_lost(
    app: Any, pools: Pools, task: str, caplog: pytest.LogCaptureFixture
) -> None:
    fatal = getattr(app, task).submit()
    others = app.add.submit_many([(n, 0) for n in range(200)])
    pool = pools(app.queue, 2, "processes")

    pool.start()

    assert fatal.result(timeout=40) in ("stayed", "sound")
    assert [handle.result(timeout=20) for handle in others] == list(range(200))
    app.queue.wait(timeout=10)
    assert_all_done_once(app, 201)
    assert pool.stats().replaced == 1
    cause = {"leave": "exit code 3", "crash": "SIGSEGV"}[task]
    assert f"died ({cause})" in caplog.text


@pytest.mark.parametrize(("task", "code"), [("leave", 3), ("crash", -signal.SIGSEGV)])
@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_when_a_process_of_slots_dies_another_pool_goes_on(
    make_app: Callable[..., Any],
    script: Script,
    pools: Pools,
    kind: str,
    task: str,
    code: int,
) -> None:
    app = make_app(lease=1.0)
    others = app.add.submit_many([(n, 0) for n in range(200)])
    fatal = getattr(app, task).submit()

    process = script(running(kind), lease=1.0)
    assert process.wait(timeout=40) == code
    pools(app.queue, 2, kind).start()

    assert fatal.result(timeout=30) in ("stayed", "sound")
    assert [handle.result(timeout=20) for handle in others] == list(range(200))
    app.queue.wait(timeout=10)
    assert_all_done_once(app, 201)
    wait_until(lambda: "mill.0" not in app.queue.counts().leases, 10, "the dead to go")


def test_a_task_that_kills_its_process_each_time_is_given_up(
    app: Any, pools: Pools
) -> None:
    poison = app.poison.submit()
    others = app.add.submit_many([(n, 0) for n in range(50)])
    pool = pools(app.queue, 2, "processes")
    pool.start()

    with pytest.raises(TaskDead, match="its worker died 3 times"):
        poison.result(timeout=50)

    assert [handle.result(timeout=20) for handle in others] == list(range(50))
    wait_until(lambda: pool.stats().workers == 2, 20, "the last to be replaced")
    assert_all_done_once(app, 50, dead=1)


def test_a_task_that_holds_the_interpreter_is_not_said_to_have_killed_its_workers(
    make_app: Callable[..., Any], pools: Pools, see: Any, tmp_path: Path
) -> None:
    app = make_app(
        lease=1.0,
        more=f"""
        import ctypes

        @queue.task(name="silence")
        def silence() -> None:
            # Not even the heartbeat runs, until somebody opens the other end.
            ctypes.PyDLL(None).open({bytes(tmp_path / "pipe")!r}, os.O_RDONLY)
            notes.rpush(f"{{NAME}}:late", 1)
        """,
    )
    silencing = app.silence.submit()
    pool = pools(app.queue, 3, "processes")
    pool.start()
    upkeep = WorkStealer(app.queue)

    def is_over() -> bool:
        upkeep.recruited()
        return silencing.state().state is State.DEAD

    wait_until(is_over, 60, "it to be given up")

    with pytest.raises(TaskDead, match="or was silent for longer than its lease"):
        silencing.result(timeout=1)
    assert "or were silent for longer" in str(Inspector(app.queue).why(silencing.id))
    # All of them live, and work again when they are let.
    see.wake()
    assert app.add.submit(1, 2).result(timeout=20) == 3
    assert pool.stats().replaced == 0


def test_a_process_whose_task_exits_as_if_all_were_well_has_died(
    make_app: Callable[..., Any], pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(
        more="""
        @queue.task(name="vanish")
        def vanish(code: int) -> str:
            if is_first(f"vanished-{code}"):
                os._exit(code)
            return "came back"
        """
    )
    # With 0, and with the codes by which children tell why they end.
    codes = [0, *map(int, ExitCode)]
    fatal = [app.vanish.submit(code) for code in sorted(set(codes))]
    others = app.add.submit_many([(n, 0) for n in range(50)])
    pool = pools(app.queue, 2, "processes")

    pool.start(until_empty=True)
    assert pool.wait(timeout=60)

    assert [handle.result(timeout=1) for handle in fatal] == ["came back"] * len(fatal)
    assert [handle.result(timeout=1) for handle in others] == list(range(50))
    assert pool.stats().replaced == len(fatal)
    assert "died (exit code 0)" in caplog.text


def test_a_process_that_was_told_to_stop_by_a_stranger_leaves_no_tasks_behind(
    app: Any, pools: Pools, see: Any
) -> None:
    held = app.hold.submit_many([(n,) for n in range(3)])
    pool = pools(app.queue, 1, "processes", batch=1)
    pool.start(until_empty=True)
    see.wait_for(1)

    (child,) = multiprocessing.active_children()
    os.kill(child.pid or 0, signal.SIGTERM)
    see.let_go()

    assert pool.wait(timeout=60)
    assert [handle.result(timeout=1) for handle in held] == [1, 1, 1]


def test_a_process_that_holds_too_much_memory_is_replaced(
    app: Any, pools: Pools
) -> None:
    pool = pools(app.queue, 1, "processes", max_memory=300.0)
    pool.start()

    first = app.swallow.submit(350).result(timeout=30)
    wait_until(lambda: app.who.submit().result(timeout=20) != first, 30, "another")

    # It was not an accident, so nothing is counted as such.
    assert pool.stats().replaced == 0
    assert app.queue.counts().stats.get("dead", 0) == 0


def test_a_process_runs_no_more_tasks_than_it_should(app: Any, pools: Pools) -> None:
    handles = app.who.submit_many([()] * 7)
    pool = pools(app.queue, 1, "processes", max_tasks=3)

    pool.start(until_empty=True)
    assert pool.wait(timeout=50)

    pids = [handle.result(timeout=1) for handle in handles]
    assert sorted(pids.count(pid) for pid in set(pids)) == [1, 3, 3]
    assert pool.stats().replaced == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_children_end_when_their_parent_is_killed(
    make_app: Callable[..., Any], script: Script, see: Any, method: str
) -> None:
    app = make_app()
    app.hold.submit_many([(n,) for n in range(3)])
    process = script(running("processes", method=method))
    see.wait_for(2)
    workers = Inspector(app.queue).stat().workers
    pids = [worker.pid for worker in workers if worker.name.startswith("mill.")]
    assert len(pids) == 2

    process.kill()
    process.wait()
    see.let_go()
    wait_until(lambda: not any(map(is_alive, pids)), 20, "the children to end")

    counts = app.queue.counts()
    assert (counts.leases, counts.assigned) == ({}, 0)
    assert counts.stats["done"] + counts.unfinished == 3


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_an_interpreter_ends_with_a_pool_left_open(
    make_app: Callable[..., Any], script: Script, kind: str
) -> None:
    app = make_app(lease=1.0)
    then = """from APP import add
        assert add.submit(1, 2).result(timeout=30) == 3"""

    process = script(running(kind, then), lease=1.0)
    _, errors = process.communicate(timeout=40)

    assert (process.returncode, errors) == (0, "")
    if kind == "processes":
        assert app.queue.counts().leases == {}


def test_a_script_without_a_guard_gets_an_error_and_no_fork_bomb(
    script: Script, tmp_path: Path
) -> None:
    process = script(
        """
        from workstealing import WorkerPool
        from workstealing.errors import PoolBroken
        from APP import queue

        open("births", "a").write("x")
        with WorkerPool(queue, 1, "processes") as pool:
            try:
                pool.wait()
            except PoolBroken:
                print("told once")
        """
    )
    told, errors = process.communicate(timeout=50)

    assert told == "told once\n"
    assert process.returncode == 1
    assert "PoolBroken: 5 processes in a row died before they got to work" in errors
    assert 'needs `if __name__ == "__main__":` around it' in errors
    assert len((tmp_path / "births").read_text()) <= 6


def test_a_script_may_hold_queue_tasks_and_pool(script: Script) -> None:
    """A spawned child knows the script by another name; the tasks keep theirs."""
    process = script(
        """
        from workstealing import TaskQueue, WorkerPool
        from workstealing.client.queue_internals import internals_of
        from APP import queue as other

        queue = TaskQueue(other.name + "-own", internals_of(other).source.redis)

        @queue.task
        def double(n: int) -> int:
            return 2 * n

        if __name__ == "__main__":
            with WorkerPool(queue, 1, "processes"):
                print(double.submit(3).result(timeout=30))
            queue.close()
        """
    )
    told, errors = process.communicate(timeout=50)

    assert told.strip() == "6", errors


def test_a_child_that_holds_the_interpreter_beyond_its_limit_is_killed(
    make_app: Callable[..., Any],
    pools: Pools,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = make_app(
        more="""
        import ctypes
        from workstealing.workers import process_child

        process_child.GRACE_SECONDS = 0.1

        @queue.task(name="seize", timeout=0.2)
        def seize() -> None:
            # With the interpreter's lock held, so that no other thread looks.
            ctypes.PyDLL(None).usleep(20_000_000)
        """
    )
    monkeypatch.setattr("workstealing.workers.child_handle.GRACE_SECONDS", 0.5)
    pool = pools(app.queue, 1, "processes")
    pool.start()
    seized = app.seize.submit()

    wait_until(lambda: pool.stats().replaced, 30, "it to be killed")
    seized.cancel()

    assert flush_logs(10)
    assert "its task holds the interpreter beyond the time limit" in caplog.text
    assert app.add.submit(1, 2).result(timeout=30) == 3


def test_a_reload_replaces_one_process_after_the_other(
    make_app: Callable[..., Any],
    pools: Pools,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = make_app(
        more="VERSION = 'old'\n@queue.task(name='version')\n"
        "def version() -> str:\n    return VERSION\n"
    )
    caplog.set_level("INFO", "workstealing")
    pool = pools(app.queue, 3, "processes", name="mill")
    pool.start()
    wait_until(lambda: len(app.queue.counts().leases) == 3, 30, "three to join")
    before = {w.name: w.pid for w in Inspector(app.queue).stat().workers}
    file = tmp_path / f"{app.__name__}.py"
    file.write_text(file.read_text().replace("'old'", "'renewed'"))

    pool.reload()
    fewest = 3

    def are_new() -> bool:
        nonlocal fewest
        now = {w.name: w.pid for w in Inspector(app.queue).stat().workers}
        fewest = min(fewest, len(now))
        return now.keys() == before.keys() and not set(now.values()) & set(
            before.values()
        )

    wait_until(are_new, 40, "all to be replaced")
    said = "pool mill has replaced its processes"
    wait_until(lambda: said in caplog.text, 20, "somebody to say so")
    assert fewest >= 2
    assert app.version.submit().result(timeout=20) == "renewed"
    assert pool.stats().replaced == 0


def test_threads_cannot_reload_their_code(app: Any, pools: Pools) -> None:
    pool = pools(app.queue, 1, "threads")
    pool.start()

    with pytest.raises(Exception, match="cannot reload its code"):
        pool.reload()
