from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from threading import Event

import pytest

from workstealing import Pool
from workstealing.errors import ConfigurationError, PoolStopped, WorkDiscarded
from workstealing.pool.work import PoolStats
from workstealing.testing import wait_until

MakePool = Callable[..., Pool]
Busy = Callable[[Pool], Event]
Gates = Callable[[], Event]


def test_a_pool_without_work_is_idle(make_pool: MakePool) -> None:
    pool = make_pool(2)

    assert pool.is_idle
    assert pool.wait_idle(0)


def test_a_pool_with_something_in_flight_is_not_idle(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1)
    gate = busy(pool)

    assert pool.stats().waiting == 0
    assert not pool.is_idle
    assert not pool.wait_idle(0.01)
    gate.set()
    assert pool.wait_idle(10)
    assert pool.is_idle


def test_idle_means_that_the_work_of_work_is_done_too(make_pool: MakePool) -> None:
    pool, done = make_pool(2), []

    def chain(left: int) -> None:
        if left:
            pool.execute(chain, left - 1)
        done.append(left)

    pool.execute(chain, 200)

    assert pool.wait_idle(10)
    assert sorted(done) == list(range(201))


def test_cancelling_the_last_work_makes_a_pool_idle(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1)
    gate = busy(pool)
    work = pool.execute(int)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(pool.wait_idle(10)))
    thread.start()

    work.cancel()
    gate.set()
    thread.join(10)

    assert seen == [True]


def test_work_cannot_wait_for_its_own_pool_to_be_idle(make_pool: MakePool) -> None:
    pool = make_pool(1)

    with pytest.raises(ConfigurationError, match="outside the pool"):
        pool.execute(pool.wait_idle).result(10)


def test_the_stats_count_workers_and_work(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(2)
    assert pool.stats() == PoolStats(workers=2, running=0, waiting=0, stolen=0)

    busy(pool)
    pool.execute_many(abs, range(5))

    stats = pool.stats()
    assert (stats.running, stats.workers, stats.waiting) == (2, 2, 5)


def test_idle_workers_sleep_until_there_is_work(
    make_pool: MakePool, until: Callable[..., bool]
) -> None:
    pool = make_pool(8)
    pool.execute(int).result(10)
    assert until(lambda: len(pool._threads.sleepers) == 8)
    woken: list[int] = []
    get_up = pool._threads.sleepers.add

    def counted(bell: object) -> None:
        woken.append(1)
        get_up(bell)  # type: ignore[arg-type]

    pool._threads.sleepers.add = counted  # type: ignore[method-assign, assignment]
    Event().wait(0.3)

    assert not woken


def test_work_that_comes_while_a_worker_lies_down_is_not_overlooked(
    make_pool: MakePool,
) -> None:
    pool, given = make_pool(1), []
    lie_down = pool._threads.sleepers.add

    def after_work_came(bell: object) -> None:
        if not given:
            thread = threading.Thread(target=lambda: given.append(pool.execute(int)))
            thread.start()
            thread.join(10)
        lie_down(bell)  # type: ignore[arg-type]

    pool._threads.sleepers.add = after_work_came  # type: ignore[method-assign, assignment]
    pool.execute(int).result(10)

    wait_until(lambda: given, 10, "the worker to fall asleep")
    assert pool.wait_idle(10)
    assert given[0].result(0) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_an_empty_stopped_pool(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1, autoscale=None)
    gate = busy(pool)
    waiting = pool.execute(abs, -1)
    running = next(iter(pool._threads.alive())).works[0]
    held, forked = Event(), Event()

    def hold() -> None:
        with waiting._condition, pool._threads._lock, pool._threads.waiting._lock:
            held.set()
            forked.wait(20)

    # By a thread that the child does not have.
    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(_child_is_as_it_should_be(pool, waiting, running))
    forked.set()
    holder.join(10)

    assert _exit_code(child) == 0
    gate.set()
    assert waiting.result(10) == 1


def _child_is_as_it_should_be(pool: Pool, waiting: object, running: object) -> int:
    try:
        assert pool.stats() == PoolStats(workers=0, running=0, waiting=0, stolen=0)
        assert pool.is_idle
        for work in (waiting, running):
            assert work.status() == "discarded"  # type: ignore[attr-defined]
            try:
                work.result(1)  # type: ignore[attr-defined]
            except WorkDiscarded:
                continue
            return 2
        try:
            pool.execute(int)
        except PoolStopped:
            pool.stop()
            pool.shutdown()
            with Pool(1) as fresh:
                assert fresh.execute(abs, -1).result(10) == 1
            return 0
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    return 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_work_may_fork(make_pool: MakePool) -> None:
    pool = make_pool(2)

    def forks() -> int:
        child = os.fork()
        if child == 0:
            try:
                pool.execute(int)
            except PoolStopped:
                os._exit(0)
            os._exit(1)
        return _exit_code(child)

    assert pool.execute(forks).result(20) == 0
    assert pool.execute(abs, -1).result(10) == 1


def _exit_code(child: int) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def _run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


def test_an_interpreter_with_an_open_pool_ends_and_does_what_was_given() -> None:
    done = _run(
        "import os\n"
        "from workstealing import Autoscale, Pool\n"
        "pool = Pool(2, autoscale=Autoscale())\n"
        "for n in range(100): pool.execute(os.write, 1, b'%d\\n' % n)\n"
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(int(line) for line in done.stdout.split()) == list(range(100))


def test_an_interpreter_ends_though_work_never_does() -> None:
    done = _run(
        "import threading, workstealing._forking as forking\n"
        "from workstealing import Pool\n"
        "forking.EXIT_SECONDS = 0.2\n"
        "pool = Pool(2)\n"
        "gate = threading.Lock(); gate.acquire()\n"
        "pool.execute(gate.acquire)\n"
    )

    assert done.returncode == 0, done.stderr
