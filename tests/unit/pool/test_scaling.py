from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from workstealing import Autoscale, Pool
from workstealing.errors import ConfigurationError
from workstealing.pool.autoscale import WaitScaler
from workstealing.pool.work import Work
from workstealing.testing import wait_until

MakePool = Callable[..., Pool]
Busy = Callable[[Pool], Event]
Spinning = Callable[[Pool], Work[None]]
Gates = Callable[[], Event]
Until = Callable[..., bool]


def _threads(pool: Pool) -> int:
    names = [one.name for one in threading.enumerate()]
    return sum(name.startswith(f"{pool.name}-") for name in names)


def _at_once(pool: Pool, number: int) -> bool:
    """Whether so many pieces of work can run at the same time."""
    together = threading.Barrier(number, timeout=10)
    works = [pool.execute(together.wait) for _ in range(number)]
    return sorted(work.result(10) for work in works) == list(range(number))


def test_a_pool_grows(make_pool: MakePool) -> None:
    pool = make_pool(1)

    pool.scale(4)

    assert pool.workers == 4
    assert _at_once(pool, 4)


def test_a_pool_shrinks(make_pool: MakePool, until: Until) -> None:
    pool = make_pool(4)

    pool.scale(1)

    assert pool.stats().workers == 1
    assert until(lambda: _threads(pool) == 1)
    assert _at_once(pool, 1)


def test_workers_can_be_set(make_pool: MakePool) -> None:
    pool = make_pool(1)

    pool.workers = 3

    assert _at_once(pool, 3)


def test_new_workers_take_what_waits(make_pool: MakePool, busy: Busy) -> None:
    pool = make_pool(1)
    busy(pool)
    works = pool.execute_many(abs, range(10))

    pool.scale(2)

    assert [work.result(10) for work in works] == list(range(10))


def test_those_who_leave_finish_what_runs_and_hand_over_what_waits(
    make_pool: MakePool, gates: Gates, until: Until
) -> None:
    pool, gate = make_pool(3), gates()
    running = [pool.execute(lambda: gate.wait(30)) for _ in range(3)]
    assert until(lambda: all(work.running() for work in running))
    waiting = pool.execute_many(abs, range(60))

    report = pool.scale(1)

    assert len(report.running) == 2
    assert report.interrupted == ()
    assert pool.stats().waiting == 60
    gate.set()
    assert all(work.result(10) for work in running)
    assert [work.result(10) for work in waiting] == list(range(60))
    assert until(lambda: _threads(pool) == 1)


def test_those_at_rest_leave_first(
    make_pool: MakePool, spinning: Spinning, until: Until
) -> None:
    pool = make_pool(3)
    work = spinning(pool)

    report = pool.scale(1, hot=True)

    assert report.running == report.interrupted == ()
    assert work.status() == "running"


def test_a_hot_scale_interrupts_what_those_who_leave_are_at(
    make_pool: MakePool, spinning: Spinning
) -> None:
    pool = make_pool(2)
    works = [spinning(pool), spinning(pool)]

    report = pool.scale(1, hot=True, timeout=10)

    assert len(report.interrupted) == 1
    assert sorted(work.status() for work in works) == ["discarded", "running"]


def test_work_may_scale_its_own_pool(make_pool: MakePool) -> None:
    pool = make_pool(2)

    pool.execute(pool.scale, 1).result(10)
    pool.execute(pool.scale, 3).result(10)

    assert _at_once(pool, 3)


def test_nothing_is_lost_in_a_thousand_quick_scales_under_load(
    make_pool: MakePool,
) -> None:
    pool, done = make_pool(4, buffer=500), []
    given = 0
    lock = threading.Lock()

    def work(number: int) -> None:
        with lock:
            done.append(number)

    for turn in range(1000):
        for _ in range(5):
            pool.execute(work, given)
            given += 1
        pool.scale((1, 6, 2, 8, 3)[turn % 5])

    assert pool.wait_idle(30)
    assert sorted(done) == list(range(given))
    assert pool.stats().waiting == 0
    assert pool.stats().workers == 3


def test_scales_from_several_threads_end_with_one_of_their_numbers(
    make_pool: MakePool, until: Until
) -> None:
    pool = make_pool(4)
    threads = [
        threading.Thread(
            target=lambda number=number: [pool.scale(number) for _ in range(50)]
        )
        for number in (2, 5, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert pool.workers in (2, 5, 7)
    assert until(lambda: _threads(pool) == pool.workers)


@pytest.mark.parametrize("garbage", [0, -1, True, 1.5, "2", None])
def test_a_senseless_size_is_refused(make_pool: MakePool, garbage: Any) -> None:
    pool = make_pool(2)

    with pytest.raises(ConfigurationError, match="workers must be"):
        pool.scale(garbage)
    with pytest.raises(ConfigurationError, match="buffer must be"):
        pool.buffer = garbage
    assert pool.workers == 2


# Autoscale, the decisions.


def test_it_grows_by_a_step_when_work_has_waited_too_long() -> None:
    scaler = WaitScaler(Autoscale(wait=0.5, step=2, most=10, idle=5))

    assert scaler.growth(now=0.4, oldest_at=0.0, workers=4) == 0
    assert scaler.check_again_in(now=0.4, oldest_at=0.0) == pytest.approx(0.1)
    assert scaler.growth(now=0.5, oldest_at=0.0, workers=4) == 2


def test_it_does_not_grow_again_before_the_newcomers_had_a_chance() -> None:
    scaler = WaitScaler(Autoscale(wait=0.5, step=2, most=10, idle=5))
    scaler.growth(now=1.0, oldest_at=0.0, workers=4)

    assert scaler.growth(now=1.4, oldest_at=0.0, workers=6) == 0
    assert scaler.growth(now=1.5, oldest_at=0.0, workers=6) == 2


def test_work_may_wait_for_half_a_second_unless_it_is_said() -> None:
    scaler = WaitScaler(Autoscale())

    assert scaler.growth(now=0.4, oldest_at=0.0, workers=4) == 0
    assert scaler.growth(now=0.5, oldest_at=0.0, workers=4) == 2


def test_it_never_grows_past_the_most() -> None:
    scaler = WaitScaler(Autoscale(wait=0.5, step=4, most=5, idle=5))

    assert scaler.growth(now=1.0, oldest_at=0.0, workers=3) == 2
    assert scaler.growth(now=2.0, oldest_at=0.0, workers=5) == 0
    assert scaler.growth(now=3.0, oldest_at=0.0, workers=9) == 0
    assert scaler.check_again_in(now=3.0, oldest_at=0.0) == 0.5


def test_it_does_not_shrink_right_after_it_grew() -> None:
    scaler = WaitScaler(Autoscale(wait=0.5, step=1, most=9, idle=5))
    scaler.growth(now=10.0, oldest_at=0.0, workers=2)

    assert not scaler.may_leave(now=14.0, workers=3, least=2)
    assert scaler.may_leave(now=15.0, workers=3, least=2)
    assert not scaler.may_leave(now=15.0, workers=2, least=2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"wait": 0},
        {"wait": -1},
        {"wait": "1"},
        {"wait": float("nan")},
        {"idle": -1},
        {"idle": float("inf")},
        {"step": 0},
        {"step": 1.5},
        {"most": 0},
        {"most": True},
        {"least": 0},
        {"backlog": 0},
        {"least": 3, "most": 2},
    ],
)
def test_a_senseless_autoscale_is_refused(arguments: Any) -> None:
    with pytest.raises(ConfigurationError):
        Autoscale(**arguments)


# Autoscale, at work.


def test_workers_are_added_while_work_waits_and_leave_when_idle(
    make_pool: MakePool, gates: Gates, until: Until
) -> None:
    pool = make_pool(1, autoscale=Autoscale(wait=0.01, step=2, most=4, idle=0.02))
    gate = gates()
    works = [pool.execute(gate.wait, 30) for _ in range(6)]

    assert until(lambda: pool.workers == 4)
    assert until(lambda: pool.stats().running == 4)
    gate.set()
    assert all(work.result(10) for work in works)

    assert until(lambda: pool.workers == 1)
    assert pool.wait_idle(10)
    assert until(lambda: _threads(pool) == 2)  # the worker, and who watches


def test_a_pool_without_autoscale_stays_as_it_is(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(2)
    busy(pool)
    pool.execute(int)

    assert pool.autoscale is None
    assert _threads(pool) == 2


def test_autoscale_can_be_switched_on_while_work_waits(
    make_pool: MakePool, busy: Busy
) -> None:
    pool = make_pool(1)
    busy(pool)
    work = pool.execute(abs, -1)

    pool.autoscale = Autoscale(wait=0.01, step=1, most=2, idle=30)

    assert work.result(10) == 1
    wait_until(lambda: pool.workers == 2, 10, "the second worker")


def test_the_step_can_be_changed_while_it_runs(
    make_pool: MakePool, busy: Busy, until: Until, gates: Gates
) -> None:
    rule = Autoscale(wait=0.01, step=1, most=9, idle=30)
    pool = make_pool(1, autoscale=Autoscale(wait=30, step=1, most=9, idle=30))
    gate = busy(pool)
    pool.execute(gate.wait, 30)
    work = pool.execute(gate.wait, 30)

    pool.autoscale = replace(rule, step=5)

    assert until(work.running)
    assert pool.autoscale.step == 5
    assert until(lambda: pool.workers == 6)


def test_autoscale_can_be_switched_off(make_pool: MakePool, until: Until) -> None:
    pool = make_pool(1, autoscale=Autoscale(wait=30, step=1, most=2, idle=30))
    assert _threads(pool) == 2

    pool.autoscale = None

    assert until(lambda: _threads(pool) == 1)
    assert pool.execute(abs, -1).result(10) == 1


def test_idle_workers_leave_down_to_what_was_last_asked_for(
    make_pool: MakePool, until: Until
) -> None:
    pool = make_pool(1, autoscale=Autoscale(wait=30, step=1, most=9, idle=0.01))

    pool.scale(3)
    pool.autoscale = Autoscale(wait=30, step=1, most=9, idle=0.02)

    assert not until(lambda: pool.workers < 3, seconds=0.15)


def test_nothing_is_lost_while_workers_come_and_go_by_themselves(
    make_pool: MakePool, until: Until
) -> None:
    rule = Autoscale(wait=0.001, step=3, most=8, idle=0.001)
    pool = make_pool(1, buffer=50, autoscale=rule)
    done: list[int] = []

    for number in range(3000):
        pool.execute(done.append, number)

    assert pool.wait_idle(20)
    assert sorted(done) == list(range(3000))
    assert until(lambda: pool.workers == 1)


def test_a_stopped_pool_has_no_thread_left_that_watches(
    make_pool: MakePool, until: Until
) -> None:
    pool = make_pool(2, autoscale=Autoscale())

    pool.stop()

    assert until(lambda: _threads(pool) == 0)
