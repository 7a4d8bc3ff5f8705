from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from workstealing import Pool
from workstealing.errors import (
    ConfigurationError,
    PoolStopped,
    StopWork,
    WorkDiscarded,
)
from workstealing.pool.work import Work

MakePool = Callable[..., Pool]
Busy = Callable[[Pool], Event]
Spinning = Callable[[Pool], Work[None]]
Gates = Callable[[], Event]
Until = Callable[..., bool]
MakeFlag = Callable[[], Any]


def _threads(pool: Pool) -> list[str]:
    names = [one.name for one in threading.enumerate()]
    return [name for name in names if name.startswith(f"{pool.name}-")]


def test_a_graceful_stop_lets_what_runs_finish_and_reports_the_rest(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(2)
    gate = busy(pool)
    works = pool.execute_many(pow, [2, 3], [4, 5])
    threading.Timer(0.05, gate.set).start()

    report = pool.stop()

    assert report.not_begun == tuple(works)
    assert [work.status() for work in works] == ["discarded", "discarded"]
    assert report.running == report.interrupted == ()
    assert not _threads(pool)
    assert pool.stats().workers == 0


def test_work_that_was_not_begun_can_be_given_to_another_pool(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1)
    gate = busy(pool)
    pool.execute(int, "ff", base=16)
    gate.set()
    work = pool.execute(int, "ff", base=16)
    left = [one for one in pool.stop().not_begun if one is work] or [
        Work(None, int, ("ff",), {"base": 16})  # type: ignore[arg-type]
    ]

    function = left[0].function
    assert function is not None
    again = make_pool(1).execute(function, *left[0].arguments, **left[0].keywords)

    assert again.result(10) == 255


def test_a_stopped_pool_takes_no_more_work(make_pool: MakePool) -> None:
    pool = make_pool(1)
    pool.stop()

    with pytest.raises(PoolStopped, match="make a new pool"):
        pool.execute(int)
    with pytest.raises(RuntimeError):
        pool.submit(int)
    with pytest.raises(PoolStopped):
        pool.scale(3)


def test_a_graceful_stop_tells_what_still_runs(
    make_pool: MakePool, gates: Gates
) -> None:
    pool, gate, begun = make_pool(1), gates(), gates()
    work = pool.execute(lambda: (begun.set(), gate.wait(30)))
    assert begun.wait(10)

    report = pool.stop(timeout=0.01)

    assert report.running == (work,)
    gate.set()
    assert pool.stop().running == ()
    assert work.status() == "done"


def test_a_hot_stop_interrupts_what_runs(
    make_pool: MakePool, spinning: Spinning
) -> None:
    pool = make_pool(2)
    works = [spinning(pool), spinning(pool)]

    report = pool.stop(hot=True, timeout=10)

    assert set(report.interrupted) == set(works)
    assert report.running == ()
    assert [work.status() for work in works] == ["discarded", "discarded"]
    with pytest.raises(WorkDiscarded, match="was interrupted"):
        works[0].result()
    assert not _threads(pool)


def test_a_broad_except_does_not_swallow_a_hot_stop(
    make_pool: MakePool, make_flag: MakeFlag
) -> None:
    begun = make_flag()

    def stubborn() -> None:
        while True:
            try:
                begun.set()
                sum(range(1000))
            except Exception:
                pass

    pool = make_pool(1)
    work = pool.execute(stubborn)
    assert begun.wait(10)

    assert pool.stop(hot=True, timeout=10).interrupted == (work,)


def test_what_is_inside_a_c_call_is_reported_as_not_interrupted(
    make_pool: MakePool,
) -> None:
    lock = threading.Lock()
    lock.acquire()
    begun = Event()

    def blocked() -> None:
        begun.set()
        with lock:
            sum(range(10))

    pool = make_pool(1)
    work = pool.execute(blocked)
    assert begun.wait(10)

    report = pool.stop(hot=True, timeout=0.05)

    assert report.running == (work,)
    assert report.interrupted == ()
    assert work.status() == "running"
    lock.release()
    with pytest.raises(WorkDiscarded):
        work.result(10)


def test_work_that_swallows_the_stop_is_told_as_it_ended(
    make_pool: MakePool, make_flag: MakeFlag
) -> None:
    begun = make_flag()

    def stubborn() -> str:
        begun.set()
        try:
            while True:
                sum(range(100))
        except StopWork:
            return "saved"

    pool = make_pool(1)
    work = pool.execute(stubborn)
    assert begun.wait(10)

    report = pool.stop(hot=True, timeout=10)

    assert report.interrupted == report.running == ()
    assert work.result() == "saved"


def test_a_stop_may_be_repeated(make_pool: MakePool, spinning: Spinning) -> None:
    pool = make_pool(1)
    work = spinning(pool)

    assert pool.stop(timeout=0).running == (work,)
    assert pool.stop(hot=True, timeout=10).interrupted == (work,)
    assert pool.stop(hot=True) == pool.stop()


def test_work_may_stop_its_own_pool(make_pool: MakePool, until: Until) -> None:
    pool = make_pool(2)

    report = pool.execute(pool.stop).result(10)

    assert [work.function for work in report.running] == [None]
    assert until(lambda: not _threads(pool))


def test_work_that_stops_its_pool_hot_is_interrupted_itself(
    make_pool: MakePool, until: Until
) -> None:
    pool = make_pool(2)
    work = pool.execute(pool.stop, hot=True, timeout=1)

    with pytest.raises(WorkDiscarded):
        work.result(10)
    assert until(lambda: not _threads(pool))


def test_waiting_work_is_discarded_by_its_id(make_pool: MakePool, busy: Busy) -> None:
    pool, calls = make_pool(1), []
    gate = busy(pool)
    first, second = pool.execute_many(calls.append, [1, 2])

    report = pool.discard([first.id])

    assert report.not_begun == (first,)
    assert first.status() == "discarded"
    gate.set()
    second.result(10)
    assert calls == [2]


def test_discarding_leaves_what_runs_alone_unless_it_is_hot(
    make_pool: MakePool, spinning: Spinning
) -> None:
    pool = make_pool(1)
    work = spinning(pool)

    assert pool.discard([work.id]).running == (work,)
    assert work.status() == "running"
    assert pool.discard([work.id], hot=True, timeout=10).interrupted == (work,)
    assert work.status() == "discarded"
    assert pool.execute(abs, -1).result(10) == 1


def test_a_hot_discard_hits_no_other_work(
    make_pool: MakePool, spinning: Spinning
) -> None:
    pool = make_pool(2)
    one, other = spinning(pool), spinning(pool)

    pool.discard([one.id], hot=True, timeout=10)

    assert (one.status(), other.status()) == ("discarded", "running")


def test_ids_of_work_that_is_over_or_never_was_are_told(make_pool: MakePool) -> None:
    pool = make_pool(1)
    work = pool.execute(int)
    work.result(10)
    assert pool.wait_idle(10)

    assert pool.discard([work.id, "nobody"]).unknown == (work.id, "nobody")


def test_one_id_is_no_list_of_ids(make_pool: MakePool) -> None:
    with pytest.raises(ConfigurationError, match="a list of ids"):
        make_pool(1).discard("pool-1-1")


@pytest.mark.parametrize("timeout", [-1, "1", True, float("nan"), float("inf")])
def test_a_senseless_timeout_is_refused(make_pool: MakePool, timeout: Any) -> None:
    pool = make_pool(1)

    for call in (pool.stop, lambda **kw: pool.discard([], **kw), pool.wait_idle):
        with pytest.raises(ConfigurationError, match="timeout must be"):
            call(timeout=timeout)
    assert pool.execute(abs, -1).result(10) == 1


@pytest.mark.usefixtures("no_collector")
def test_hot_discards_in_a_hurry_never_hit_the_next_work(make_pool: MakePool) -> None:
    """Every work ends as done, or discarded; none fails with a stray stop."""
    pool = make_pool(2, buffer=10_000)
    works: list[Work[int]] = []
    is_over = Event()

    def discards() -> None:
        while not is_over.is_set():
            pool.discard([work.id for work in works[-3:]], hot=True, timeout=0)

    thread = Thread(target=discards)
    thread.start()
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline and len(works) < 5000:
        works.append(pool.execute(sum, range(300)))
    concurrent.futures.wait(works, 20)
    is_over.set()
    thread.join(10)

    assert {str(work.status()) for work in works} <= {"done", "discarded"}
    assert pool.wait_idle(10)
    assert pool.execute(abs, -1).result(10) == 1
    assert pool.workers == 2


@pytest.mark.usefixtures("no_collector")
def test_a_hot_stop_in_the_middle_of_giving_leaves_the_books_in_order(
    make_pool: MakePool, make_flag: MakeFlag
) -> None:
    """Work that gives work all the time is interrupted, again and again."""
    pool = make_pool(2, buffer=100)
    for _ in range(150):
        begun = make_flag()

        def feed(begun: Any = begun) -> None:
            while True:
                pool.execute(int)
                begun.set()

        work = pool.execute(feed)
        assert begun.wait(10)
        assert pool.discard([work.id], hot=True, timeout=10).interrupted == (work,)
        for one in list(pool._threads.waiting._by_id.values()):
            one.cancel()
    assert pool.wait_idle(10)
    assert pool.stats().waiting == 0


def test_a_stop_that_comes_while_work_gives_work_waits_until_it_is_given(
    make_pool: MakePool,
) -> None:
    pool, done = make_pool(1), []
    place = pool._threads._place

    def interrupted(work: Work[Any], number: int | None) -> None:
        if number is not None and giving:
            giving.pop().interruption.interrupt()
            sum(range(10))
        place(work, number)

    def give() -> None:
        pool.execute(done.append, "inner")
        done.append("never")

    giving: list[Work[None]] = []
    gate = Event()
    work = pool.execute(lambda: (gate.wait(10), give())[1])
    giving.append(work)
    pool._threads._place = interrupted  # type: ignore[method-assign]
    gate.set()

    with pytest.raises(WorkDiscarded):
        work.result(10)
    assert pool.wait_idle(10)
    assert done == ["inner"]


def test_shutdown_does_all_that_waits(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(2)
    gate = busy(pool)
    works = pool.execute_many(abs, range(50))
    threading.Timer(0.05, gate.set).start()

    pool.shutdown()

    assert all(work.done() for work in works)
    assert not _threads(pool)


def test_shutdown_may_return_at_once(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1)
    gate = busy(pool)
    work = pool.execute(abs, -1)

    pool.shutdown(wait=False)

    assert not work.done()
    gate.set()
    assert work.result(10) == 1


def test_shutdown_may_cancel_what_waits(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1)
    gate = busy(pool)
    work = pool.submit(abs, -1)

    pool.shutdown(wait=False, cancel_futures=True)

    assert work.cancelled()
    gate.set()


def test_cancelling_the_last_work_ends_a_pool_that_shuts_down(
    make_pool: MakePool, busy: Busy, until: Until
) -> None:
    pool = make_pool(2)
    gate = busy(pool)
    work = pool.execute(int)
    pool.shutdown(wait=False)

    work.cancel()
    gate.set()

    assert until(lambda: not _threads(pool))


def test_the_end_of_a_with_block_waits_for_all_work() -> None:
    with Pool(2) as pool:
        works = pool.execute_many(abs, range(100))

    assert all(work.done() for work in works)
    assert not _threads(pool)


@pytest.mark.usefixtures("no_collector")
def test_an_interruption_that_is_put_off_arrives_when_it_is_safe(
    make_pool: MakePool, gates: Gates, until: Until
) -> None:
    inside, gate = gates(), gates()

    class Entering:
        def __enter__(self) -> None:
            inside.set()
            while not gate.is_set():
                time.sleep(0.001)

        def __exit__(self, *_: object) -> None: ...

    def enter_and_go_on() -> None:
        with Entering():
            while True:
                time.sleep(0.001)

    pool = make_pool(1)
    work = pool.execute(enter_and_go_on)
    assert inside.wait(10)
    assert pool.discard([work.id], hot=True, timeout=0.05).running == (work,)

    gate.set()

    assert until(lambda: work.status() == "discarded")
