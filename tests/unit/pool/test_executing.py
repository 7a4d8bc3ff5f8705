from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import logging
import threading
import weakref
from collections.abc import Callable
from threading import Barrier, Event, get_ident, local
from typing import Any, cast

import pytest

from workstealing import Autoscale, Pool
from workstealing.errors import (
    ConfigurationError,
    PoolBroken,
    ResultTimeout,
    WorkDiscarded,
)
from workstealing.pool.pool_thread import pool_thread_here
from workstealing.pool.work import Work, WorkStatus

MakePool = Callable[..., Pool]
Busy = Callable[[Pool], Event]
Until = Callable[..., bool]


def test_a_call_is_executed_with_its_arguments(make_pool: MakePool) -> None:
    work = make_pool(2).execute(divmod, 7, 2)

    assert work.result(10) == (3, 1)
    assert work.status() is WorkStatus.DONE
    assert work.status() == "done"


def test_keywords_are_passed_whatever_they_are_called(make_pool: MakePool) -> None:
    work = make_pool(1).execute(dict, function=1, self=2, timeout=3)

    assert work.result(10) == {"function": 1, "self": 2, "timeout": 3}


def test_each_work_has_an_id_of_its_own(make_pool: MakePool) -> None:
    pool = make_pool(2, name="mine")

    ids = {pool.execute(int).id for _ in range(50)}

    assert len(ids) == 50
    assert all(one.startswith("mine-") for one in ids)


def test_the_status_follows_the_work(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1)
    gate = busy(pool)

    work = pool.execute(int, "x")

    assert work.status() == "waiting"
    gate.set()
    assert isinstance(work.exception(10), ValueError)
    assert work.status() == "failed"


def test_running_work_says_so(make_pool: MakePool, gates: Callable[[], Event]) -> None:
    gate, begun = gates(), gates()
    work = make_pool(1).execute(lambda: (begun.set(), gate.wait(30)))

    assert begun.wait(10)
    assert work.status() == "running"


def test_an_error_of_the_work_is_raised_where_its_result_is_wanted(
    make_pool: MakePool,
) -> None:
    work = make_pool(1).execute(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        work.result(10)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_not_even_a_base_exception_ends_a_worker(
    make_pool: MakePool, error: type[BaseException]
) -> None:
    pool = make_pool(1)

    def leave() -> None:
        raise error

    with pytest.raises(error):
        pool.execute(leave).result(10)
    assert pool.execute(abs, -1).result(10) == 1
    assert pool.workers == 1


def test_a_timeout_of_the_work_is_not_taken_for_ours(make_pool: MakePool) -> None:
    def late() -> None:
        raise TimeoutError("of my own")

    with pytest.raises(TimeoutError, match="of my own"):
        make_pool(1).execute(late).result(10)


def test_a_result_that_is_late_is_a_timeout(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1)
    busy(pool)
    work = pool.execute(int)

    with pytest.raises(ResultTimeout, match="still waiting"):
        work.result(0.01)
    with pytest.raises(concurrent.futures.TimeoutError):
        work.exception(0)


def test_waiting_work_can_be_cancelled(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1)
    gate = busy(pool)
    calls: list[int] = []
    work = pool.execute(calls.append, 1)

    assert work.cancel()
    assert work.cancel()

    assert work.status() == "discarded"
    assert pool.stats().waiting == pool._threads.deques.waiting == 0
    with pytest.raises(WorkDiscarded, match="before it began"):
        work.result()
    with pytest.raises(concurrent.futures.CancelledError):
        work.result()
    gate.set()
    assert pool.wait_idle(10)
    assert not calls


def test_running_and_ended_work_cannot_be_cancelled(
    make_pool: MakePool, gates: Callable[[], Event]
) -> None:
    pool, gate, begun = make_pool(1), gates(), gates()
    work = pool.execute(lambda: (begun.set(), gate.wait(30), 5)[2])
    assert begun.wait(10)

    assert not work.cancel()
    gate.set()
    assert work.result(10) == 5
    assert not work.cancel()


def test_many_are_executed_in_order_of_their_items(make_pool: MakePool) -> None:
    works = make_pool(3).execute_many(pow, range(100), [2] * 100)

    assert [work.result(10) for work in works] == [n * n for n in range(100)]


def test_map_gives_results_in_order(make_pool: MakePool) -> None:
    assert list(make_pool(3).map(abs, range(-50, 0))) == list(range(50, 0, -1))


def test_map_runs_more_than_the_buffer_holds(make_pool: MakePool) -> None:
    assert sum(make_pool(2, buffer=3).map(abs, range(200))) == 19900


def test_submit_returns_a_real_future(make_pool: MakePool) -> None:
    pool, seen = make_pool(2), []

    future = pool.submit(abs, -3)
    future.add_done_callback(seen.append)

    assert isinstance(pool, concurrent.futures.Executor)
    assert isinstance(future, concurrent.futures.Future)
    done, waiting = concurrent.futures.wait([future], timeout=10)
    assert (done, waiting) == ({future}, set())
    assert list(concurrent.futures.as_completed([future], timeout=10)) == [future]
    assert pool.wait_idle(10)
    assert seen == [future]


def test_work_has_all_that_a_future_of_this_python_has() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    work: Work[int] = Work(None, int, (), {})  # type: ignore[arg-type]

    for name, value in vars(future).items():
        if name != "_condition":
            assert vars(work)[name] == value


async def test_asyncio_takes_it_as_an_executor(make_pool: MakePool) -> None:
    pool = make_pool(2)
    loop = asyncio.get_running_loop()

    assert await loop.run_in_executor(pool, abs, -2) == 2
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(pool, divmod, 1, 0)


async def test_a_cancelled_asyncio_future_takes_its_work_out(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1)
    busy(pool)
    waiting = asyncio.get_running_loop().run_in_executor(pool, abs, -2)
    assert pool.stats().waiting == 1

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for _ in range(100):
        await asyncio.sleep(0)

    assert pool.stats().waiting == 0


def test_those_who_wait_for_several_hear_of_a_cancelled_one(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1)
    busy(pool)
    work = pool.submit(int)

    work.cancel()

    assert concurrent.futures.wait([work], timeout=0).done == {work}


def test_work_may_wait_for_work_even_in_a_pool_of_one(make_pool: MakePool) -> None:
    pool = make_pool(1)

    def fibonacci(n: int) -> int:
        if n < 2:
            return n
        parts = [pool.execute(fibonacci, n - 1), pool.execute(fibonacci, n - 2)]
        return sum(part.result() for part in parts)

    assert pool.execute(fibonacci, 10).result(20) == 55
    assert pool.wait_idle(10)


def test_a_worker_may_use_map_of_its_own_pool(make_pool: MakePool) -> None:
    pool = make_pool(1, buffer=2)

    assert pool.execute(lambda: sum(pool.map(abs, range(50)))).result(10) == 1225


def test_work_of_a_worker_goes_to_its_own_deque(make_pool: MakePool) -> None:
    pool = make_pool(3)
    sizes: list[int] = []

    def feed() -> None:
        me = pool_thread_here(pool._threads)
        assert me is not None
        deques = pool._threads.deques
        pool._threads.sleepers.wake_one = lambda: False  # type: ignore[method-assign]
        works = [pool.execute(int) for _ in range(5)]
        sizes.append(deques.size(me.number))
        del pool._threads.sleepers.wake_one  # type: ignore[method-assign]
        for work in works:
            work.result()

    assert pool.wait_idle(10)
    pool.execute(feed).result(10)

    assert sizes == [5]


def test_idle_workers_steal_what_one_worker_was_fed(
    make_pool: MakePool, gates: Callable[[], Event]
) -> None:
    pool, threads = make_pool(4), set()
    together = threading.Barrier(4, timeout=10)

    def meet() -> None:
        together.wait()
        threads.add(threading.get_ident())

    def feed() -> None:
        for work in [pool.execute(meet) for _ in range(3)]:
            work.add_done_callback(lambda _: None)
        meet()

    pool.execute(feed).result(20)

    assert pool.wait_idle(10)
    assert len(threads) == 4
    assert pool.stats().stolen >= 3


def test_what_was_called_and_what_it_was_given_is_not_kept(make_pool: MakePool) -> None:
    class Thing:
        pass

    pool, thing = make_pool(1), Thing()
    gone = weakref.ref(thing)
    work = pool.execute(id, thing)
    work.result(10)
    assert pool.wait_idle(10)

    del thing

    assert gone() is None


def test_a_failed_work_is_freed_without_the_collector(make_pool: MakePool) -> None:
    pool = make_pool(1)
    gc.collect()
    gc.disable()
    try:
        work = pool.execute(int, "x")
        assert isinstance(work.exception(10), ValueError)
        assert pool.wait_idle(10)
        gone = weakref.ref(work)
        del work
        assert gone() is None
    finally:
        gc.enable()


def test_a_failing_callback_does_not_end_a_worker(make_pool: MakePool) -> None:
    pool = make_pool(1)
    work = pool.execute(int)
    work.add_done_callback(lambda _: 1 / 0)

    assert work.result(10) == 0
    assert pool.execute(abs, -1).result(10) == 1


def test_a_worker_outlives_a_result_that_someone_else_has_set(
    make_pool: MakePool, gates: Callable[[], Event]
) -> None:
    pool, gate, begun = make_pool(1), gates(), gates()
    work = pool.execute(lambda: (begun.set(), gate.wait(30)))
    assert begun.wait(10)

    work.set_result((None, True))
    gate.set()

    assert pool.execute(abs, -1).result(10) == 1
    assert pool.wait_idle(10)


@pytest.mark.parametrize("garbage", [None, 3, "abs"])
def test_what_cannot_be_called_is_refused(make_pool: MakePool, garbage: object) -> None:
    with pytest.raises(ConfigurationError, match="pass something callable"):
        make_pool(1).execute(garbage)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"workers": 0},
        {"workers": True},
        {"workers": 2.0},
        {"workers": "4"},
        {"buffer": 0},
        {"buffer": None},
        {"autoscale": 3},
        {"buffer_timeout": -1},
        {"buffer_timeout": "1"},
        {"buffer_timeout": float("nan")},
        {"buffer_timeout": float("inf")},
    ],
)
def test_a_pool_with_senseless_arguments_is_refused(
    arguments: dict[str, object],
) -> None:
    before = threading.active_count()

    with pytest.raises(ConfigurationError):
        Pool(**{"workers": 1, **arguments})  # type: ignore[arg-type]
    assert threading.active_count() == before


def test_a_pool_of_nobody_is_refused_as_concurrent_futures_refuses_it() -> None:
    with pytest.raises(ValueError, match="max_workers must be greater than 0"):
        concurrent.futures.ThreadPoolExecutor(0)
    with pytest.raises(ValueError, match="workers must be 1 or more"):
        Pool(0)


def test_an_abandoned_pool_does_its_work_and_ends(until: Until) -> None:
    done: list[int] = []
    pool = Pool(2, name="abandoned", autoscale=Autoscale())
    works = [pool.execute(done.append, number) for number in range(20)]

    del pool

    assert all(work.result(10) is None for work in works)
    assert len(done) == 20
    assert until(
        lambda: (
            not [
                one
                for one in threading.enumerate()
                if one.name.startswith("abandoned-")
            ]
        )
    )


def test_an_initializer_is_called_in_each_thread_before_any_work(
    make_pool: MakePool,
) -> None:
    here = local()
    both = Barrier(2)

    def initialize() -> None:
        here.ready = get_ident()

    def look() -> bool:
        both.wait(10)
        return bool(here.ready == get_ident())

    pool = make_pool(1, initializer=initialize)
    pool.scale(2)

    works = [pool.execute(look) for _ in range(2)]
    assert [work.result(10) for work in works] == [True, True]


def test_work_of_a_thread_whose_initializer_raised_fails_with_the_reason(
    make_pool: MakePool,
) -> None:
    def initialize() -> None:
        raise LookupError("no such database")

    ran: list[int] = []
    pool = make_pool(2, initializer=initialize)

    works = [pool.execute(ran.append, n) for n in range(5)]

    for work in works:
        with pytest.raises(PoolBroken, match="LookupError: no such database"):
            work.result(10)
    assert not ran


def test_the_thread_goes_on_though_a_filter_of_logs_raises_as_well(
    make_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError

    def initialize() -> None:
        raise LookupError("no such database")

    log = logging.getLogger("workstealing.pool.pool_thread")
    monkeypatch.setattr(log, "filters", [refuse])
    pool = make_pool(1, initializer=initialize)

    with pytest.raises(PoolBroken, match="LookupError: no such database"):
        pool.execute(print).result(10)


def test_an_initializer_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="initializer must be a function"):
        Pool(initializer=cast("Any", 7))
