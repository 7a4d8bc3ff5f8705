from __future__ import annotations

import threading
from collections.abc import Callable
from threading import Event, Thread

import pytest

from workstealing import Pool
from workstealing.errors import PoolFull, PoolStopped

MakePool = Callable[..., Pool]
Busy = Callable[[Pool], Event]
Until = Callable[..., bool]


def _is_waiting_for_room(pool: Pool) -> bool:
    return pool._threads.waiting._blocked > 0


def test_a_full_buffer_blocks_until_there_is_room(
    make_pool: MakePool, busy: Busy, until: Until
) -> None:
    pool = make_pool(1, buffer=2)
    gate = busy(pool)
    pool.execute_many(abs, [1, 2])
    given = []
    thread = Thread(target=lambda: given.append(pool.execute(abs, -3)))
    thread.start()

    assert until(lambda: _is_waiting_for_room(pool))
    assert not given
    assert pool.stats().waiting == 2
    gate.set()
    thread.join(10)

    assert given[0].result(10) == 3


def test_with_a_timeout_of_zero_a_full_buffer_raises(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1, buffer=1, buffer_timeout=None)
    busy(pool)
    pool.buffer_timeout = 0
    pool.execute(int)

    with pytest.raises(PoolFull, match="its buffer is 1"):
        pool.execute(int)
    with pytest.raises(PoolFull):
        pool.submit(int)


def test_waiting_for_room_has_a_limit(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1, buffer=1)
    gate = busy(pool)
    pool.execute(int)

    with pytest.raises(PoolFull):
        pool.execute_within(0.01, int)
    threading.Timer(0.01, gate.set).start()
    assert pool.execute_within(10, abs, -1).result(10) == 1


def test_many_that_do_not_fit_tell_what_was_given(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1, buffer=2)
    busy(pool)
    pool.buffer_timeout = 0

    with pytest.raises(PoolFull) as caught:
        pool.execute_many(abs, range(5))

    assert len(caught.value.submitted) == 2


def test_the_buffer_can_be_changed_while_someone_waits_for_room(
    make_pool: MakePool, busy: Busy, until: Until
) -> None:
    pool = make_pool(1, buffer=1)
    busy(pool)
    pool.execute(int)
    thread = Thread(target=pool.execute, args=(int,))
    thread.start()
    assert until(lambda: _is_waiting_for_room(pool))

    pool.buffer = 2
    thread.join(10)

    assert pool.buffer == 2
    assert pool.stats().waiting == 2


def test_whoever_waits_for_room_is_told_of_the_stop(
    make_pool: MakePool, busy: Busy, until: Until
) -> None:
    pool = make_pool(1, buffer=1)
    busy(pool)
    pool.execute(int)
    errors: list[BaseException] = []

    def give() -> None:
        try:
            pool.execute(int)
        except PoolStopped as error:
            errors.append(error)

    thread = Thread(target=give)
    thread.start()
    assert until(lambda: _is_waiting_for_room(pool))

    pool.stop(timeout=0)
    thread.join(10)

    assert len(errors) == 1


def test_cancelling_makes_room(make_pool: MakePool, busy: Busy, until: Until) -> None:
    pool = make_pool(1, buffer=1)
    busy(pool)
    work = pool.execute(int)
    thread = Thread(target=pool.execute, args=(int,))
    thread.start()
    assert until(lambda: _is_waiting_for_room(pool))

    work.cancel()
    thread.join(10)

    assert not thread.is_alive()


def test_workers_are_never_made_to_wait_for_room(make_pool: MakePool) -> None:
    pool = make_pool(2, buffer=1)

    def feed() -> int:
        return len([pool.execute(int) for _ in range(50)])

    assert [pool.execute(feed).result(10) for _ in range(2)] == [50, 50]
    assert pool.wait_idle(10)


def test_workers_that_may_not_wait_are_refused_as_well(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1, buffer=1, buffer_timeout=0)
    errors = []

    def feed() -> None:
        pool.execute(int)
        try:
            pool.execute(int)
        except PoolFull as error:
            errors.append(error)

    pool.execute(feed).result(10)

    assert len(errors) == 1


def test_what_many_threads_give_is_all_done(make_pool: MakePool) -> None:
    pool, done = make_pool(3, buffer=5), []

    def give(first: int) -> None:
        for number in range(first, first + 300):
            pool.execute(done.append, number)

    threads = [Thread(target=give, args=(first,)) for first in range(0, 1200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert pool.wait_idle(10)
    assert sorted(done) == list(range(1200))
