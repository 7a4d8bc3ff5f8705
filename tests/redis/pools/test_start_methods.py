"""Children are made as the caller says: each way, they work, die and end alike."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from multiprocessing import active_children
from typing import Any

import pytest

from workstealing.errors import ConfigurationError, TaskFailed
from workstealing.inspecting import Inspector
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]
Script = Callable[..., "subprocess.Popen[str]"]
each_method = pytest.mark.parametrize("method", ["spawn", "forkserver"])


def pids_of(app: Any) -> list[int]:
    return [worker.pid for worker in Inspector(app.queue).stat().workers]


@each_method
def test_children_run_all_tasks_once_and_are_gone_after_a_stop(
    app: Any, pools: Pools, see: Any, method: str
) -> None:
    pool = pools(app.queue, 2, "processes", name="mill", start_method=method)
    pool.start()
    wait_until(lambda: len(app.queue.counts().leases) == 2, 40, "two to join")
    pids = pids_of(app)

    handles = app.add.submit_many([(n, 0) for n in range(200)])
    results = [handle.result(timeout=20) for handle in handles]

    assert pool.stop() == 0
    assert results == list(range(200))
    counts = app.queue.counts()
    assert (counts.stats["done"], counts.unfinished, counts.leases) == (200, 0, {})
    assert [child.name for child in active_children() if "mill" in child.name] == []
    assert not any(map(see.is_alive, pids))


@each_method
@pytest.mark.parametrize(
    ("task", "cause"), [("leave", "exit code 3"), ("crash", "SIGSEGV")]
)
def test_a_child_that_ends_in_a_task_is_replaced_and_the_cause_is_told(
    app: Any,
    pools: Pools,
    method: str,
    task: str,
    cause: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = pools(app.queue, 1, "processes", start_method=method)
    pool.start()

    assert getattr(app, task).submit().result(timeout=40) in ("stayed", "sound")
    assert pool.stats().replaced == 1
    assert f"died ({cause})" in caplog.text


@each_method
def test_a_child_whose_task_is_over_its_time_ends_and_another_goes_on(
    app: Any, pools: Pools, method: str
) -> None:
    pool = pools(app.queue, 1, "processes", start_method=method)
    pool.start()

    with pytest.raises(TaskFailed, match="TimeoutError"):
        app.endless.submit().result(timeout=40)
    assert app.add.submit(1, 2).result(timeout=40) == 3
    assert pool.stats().replaced == 0


@each_method
def test_a_hot_stop_hands_back_what_children_run(
    app: Any, pools: Pools, see: Any, method: str
) -> None:
    handles = app.hold.submit_many([(1,), (2,)])
    pool = pools(app.queue, 2, "processes", start_method=method)
    pool.start()
    see.wait_for(2)
    pids = pids_of(app)

    assert pool.stop(hot=True) == 2

    assert [h.state().state for h in handles] == [State.WAITING, State.WAITING]
    assert app.queue.counts().leases == {}
    assert not any(map(see.is_alive, pids))


def test_when_the_fork_server_dies_its_children_end_and_others_take_their_place(
    app: Any, pools: Pools, see: Any
) -> None:
    handles = app.hold.submit_many([(n,) for n in range(6)])
    pool = pools(app.queue, 2, "processes", start_method="forkserver")
    pool.start()
    see.wait_for(2)
    pids = pids_of(app)
    servers = {see.parent_of(pid) for pid in pids}
    assert os.getpid() not in servers

    for server in servers:
        os.kill(server, signal.SIGKILL)
    see.wait_for(4)
    see.let_go()

    assert [handle.result(timeout=30) for handle in handles] == [1] * 6
    app.queue.wait(timeout=10)
    assert app.queue.counts().stats["done"] == 6
    wait_until(lambda: not any(map(see.is_alive, pids)), 20, "the former ones to end")


@pytest.mark.parametrize("method", ["forkserver", "fork"])
def test_only_spawned_children_can_import_the_code_anew(
    app: Any, pools: Pools, method: str
) -> None:
    pool = pools(app.queue, 1, "processes", start_method=method)
    pool.start()

    with pytest.raises(ConfigurationError, match=f"made by '{method}' begin with code"):
        pool.reload()


@each_method
def test_a_script_may_import_its_queue_where_its_children_do_not(
    script: Script, method: str
) -> None:
    process = script(
        f"""
        if __name__ == "__main__":
            from workstealing import WorkerPool
            from APP import add, queue

            with WorkerPool(queue, 1, "processes", start_method={method!r}):
                print(add.submit(1, 2).result(timeout=30))
            queue.close()
        """
    )
    told, errors = process.communicate(timeout=50)

    assert (told, errors) == ("3\n", "")


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_children_log_like_their_parent(script: Script, method: str) -> None:
    process = script(
        f"""
        import logging

        if __name__ == "__main__":
            from workstealing import WorkerPool
            from workstealing.errors import TaskFailed
            from APP import add, burst, queue

            logging.basicConfig(level=logging.INFO, format="%(levelname)s|%(message)s")
            with WorkerPool(queue, 1, "processes", start_method={method!r}):
                add.submit(1, 2).result(timeout=30)
                try:
                    burst.submit().result(timeout=30)
                except TaskFailed:
                    pass
            queue.close()
        """
    )
    _, errors = process.communicate(timeout=50)

    assert errors.count("ERROR|task ") == errors.count("Traceback") == 1
    assert errors.count("INFO|task ") == 1
