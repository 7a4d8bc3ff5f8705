"""Pools that work for several queues: shares, stops, crashes, and queues that are away.

Both queues leave their notes in one list, so a test sees in which order tasks began:
those of the first are numbers below 1000.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import subprocess
from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Thread
from typing import Any

import pytest

from workstealing import Autoscale
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError, ResourceFailed, TaskFailed
from workstealing.queue import worker_calls
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until
from workstealing.workers.worker_pool import WorkerPool

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
Pools = Callable[..., WorkerPool]
Script = Callable[..., "subprocess.Popen[str]"]

_OTHER = """
    other = TaskQueue(NAME + "-other", {url!r}, lease={lease!r})


    @queue.task(name="note")
    def note(number: int) -> int:
        begun(number)
        return number


    @queue.task(name="pass_on")
    def pass_on(left: int) -> None:
        begun(left)
        if left:
            pass_back.submit(left - 1)


    @other.task(name="pass_back")
    def pass_back(left: int) -> None:
        begun(1000 + left)
        if left:
            pass_on.submit(left - 1)


    @other.task(name="note")
    def note_other(number: int) -> int:
        begun(1000 + number)
        return number


    @other.task(name="hold")
    def hold_other(number: int) -> int:
        begun(1000 + number)
        while not may_go():
            time.sleep(0.005)
        return current_context().attempt


    @other.task(name="endless", timeout=0.3)
    def endless_other() -> None:
        while True:
            sum(range(1000))


    @other.task(name="who")
    def who_other() -> int:
        return os.getpid()
"""


@pytest.fixture
def make_two(make_app: Callable[..., Any], redis_server: Server) -> Callable[..., Any]:
    """Import the application with a second queue, which may be on another server."""

    def make(lease: float = 10.0, url: str | None = None, more: str = "") -> Any:
        other = _OTHER.format(url=url or redis_server.url, lease=lease)
        app = make_app(lease, other + more)
        app.both = [app.queue, app.other]
        return app

    return make


@pytest.fixture
def app(make_two: Callable[..., Any]) -> Any:
    return make_two()


def numbers(amount: int) -> list[tuple[int]]:
    return [(n,) for n in range(amount)]


def is_first(number: int) -> bool:
    return number < 1000


@each_kind
def test_all_queues_are_drained_and_then_it_ends(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.note.submit_many(numbers(200))
    app.note_other.submit_many(numbers(200))
    pool = pools(app.both, 2, kind)

    pool.start(until_empty=True)

    assert pool.wait(timeout=40)
    assert len(see.begun()) == len(set(see.begun())) == 400
    for queue in app.both:
        counts = queue.counts()
        assert (counts.stats["done"], counts.unfinished, counts.leases) == (200, 0, {})
    # What waited behind others may have been put back, and taken again.
    assert pool.stats().taken >= 400


@each_kind
def test_while_both_have_tasks_they_begin_by_their_weights(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.note.submit_many(numbers(400))
    app.note_other.submit_many(numbers(400))

    pools(app.both, 1, kind, weights=[3, 1]).start()
    see.wait_for(400)

    begun = see.begun()[:400]
    assert 290 <= sum(map(is_first, begun)) <= 310
    # Not one queue after the other.
    assert 60 <= sum(map(is_first, begun[:100])) <= 90


@each_kind
def test_in_strict_order_the_first_queue_is_done_before_the_second_begins(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.note_other.submit_many(numbers(50))
    app.note.submit_many(numbers(50))

    pools(app.both, 1, kind, strict=True).start()
    see.wait_for(100)

    assert [is_first(number) for number in see.begun()] == [True] * 50 + [False] * 50


@each_kind
def test_a_queue_without_tasks_leaves_all_workers_to_the_other(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    pool = pools(app.both, 3, kind, weights=[9, 1])
    pool.start()

    app.hold_other.submit_many(numbers(5))
    see.wait_for(3)
    wait_until(lambda: pool.stats().running == 3, 20, "all workers to be busy")
    held = app.hold.submit(1)

    assert len(see.begun()) == 3
    see.let_go()
    assert held.result(timeout=20) == 1
    app.other.wait(timeout=20)


@each_kind
def test_what_waits_for_no_worker_is_in_nobodys_hands(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.hold.submit_many(numbers(1))
    pool = pools(app.both, 1, kind)
    pool.start()
    see.wait_for(1)

    later = app.note_other.submit_many(numbers(3))

    counts = app.other.counts()
    assert counts.assigned == sum(counts.loads.values())
    see.let_go()
    assert [handle.result(timeout=20) for handle in later] == [0, 1, 2]


@each_kind
def test_a_stop_hands_back_the_tasks_of_both_queues(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    handles = [
        *app.hold.submit_many(numbers(3)),
        *app.hold_other.submit_many(numbers(3)),
    ]
    pool = pools(app.both, 2, kind)
    pool.start()
    see.wait_for(2)
    assert sorted(map(is_first, see.begun())) == [False, True]

    assert pool.stop(timeout=0.1) == 2

    assert [handle.state().state for handle in handles] == [State.WAITING] * 6
    for queue in app.both:
        counts = queue.counts()
        assert (counts.leases, counts.loads, counts.assigned) == ({}, {}, 0)
    see.let_go()
    pools(app.both, 2, "threads").start()
    assert [handle.result(timeout=20) for handle in handles] == [1] * 6


@each_kind
def test_a_stop_lets_what_runs_in_both_queues_finish(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.hold.submit_many(numbers(2))
    app.hold_other.submit_many(numbers(2))
    pool = pools(app.both, 2, kind)
    pool.start()
    see.wait_for(2)
    cut: list[int] = []
    stopping = Thread(target=lambda: cut.append(pool.stop(timeout=30)))

    stopping.start()
    wait_until(
        lambda: [queue.counts().assigned for queue in app.both] == [1, 1],
        10,
        "the rest to be back",
    )
    see.let_go()
    stopping.join(30)

    assert cut == [0]
    assert [queue.counts().stats["done"] for queue in app.both] == [1, 1]
    assert [queue.counts().unfinished for queue in app.both] == [1, 1]


@each_kind
def test_a_quiet_pool_finishes_what_runs_and_takes_nothing_of_either_queue(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    for queue in app.both:
        join_idly(queue)
    app.hold.submit_many(numbers(9))
    app.hold_other.submit_many(numbers(9))
    pool = pools(app.both, 2, kind)
    pool.start()
    see.wait_for(2)
    wait_until(lambda: len(loaded(app)) == in_all(kind, 2), 20, "a deque for each")

    pool.quiet()
    # Processes hear of it a moment later.
    wait_until(lambda: not loaded(app), 20, "the deques to be handed back")
    see.let_go()

    wait_until(lambda: done(app) == 2, 20, "what ran to end")
    assert pool.stop() == 0
    assert len(see.begun()) == done(app) == 2


def join_idly(queue: Any) -> None:
    """Join as a worker that does nothing: one that is not alone has a deque."""
    parts, nothing = internals_of(queue), {"abilities": []}
    parts.driver.call(
        worker_calls.join(parts.keys, parts.settings, "idle.0", "i", nothing)
    )


def loaded(app: Any) -> set[str]:
    """Return the workers that have tasks in a deque of either queue."""
    return {worker for queue in app.both for worker in queue.counts().loads}


def done(app: Any) -> int:
    return sum(queue.counts().stats.get("done", 0) for queue in app.both)


def in_all(kind: str, number: int) -> int:
    """Return how many workers a pool of this size is to others."""
    return number if kind == "processes" else 1


_RUN = """
    from workstealing.workers.worker_pool import WorkerPool
    from APP import other, queue

    if __name__ == "__main__":
        pool = WorkerPool([queue, other], 2, {kind!r}, name="mill")
        pool.start()
        pool.wait()
"""


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_when_a_process_is_killed_with_both_queues_running_nothing_is_lost(
    make_two: Callable[..., Any],
    redis_server: Server,
    script: Script,
    pools: Pools,
    see: Any,
    kind: str,
) -> None:
    app = make_two(lease=1.0)
    handles = [
        *app.hold.submit_many(numbers(3)),
        *app.hold_other.submit_many(numbers(3)),
    ]
    other = _OTHER.format(url=redis_server.url, lease=1.0)
    process = script(_RUN.format(kind=kind), lease=1.0, more=other)
    see.wait_for(2)
    assert sorted(map(is_first, see.begun())) == [False, True]

    process.kill()
    process.wait()
    see.let_go()
    pools(app.both, 2, kind).start()

    assert len([handle.result(timeout=30) for handle in handles]) == 6
    for queue in app.both:
        queue.wait(timeout=10)
        assert queue.counts().stats["done"] == 3


def test_a_killed_child_is_replaced_and_nothing_of_either_queue_is_lost(
    app: Any, pools: Pools, see: Any
) -> None:
    handles = [
        *app.hold.submit_many(numbers(3)),
        *app.hold_other.submit_many(numbers(3)),
    ]
    others = [app.who.submit(), app.who_other.submit()]
    pool = pools(app.both, 2, "processes")
    pool.start()
    see.wait_for(2)

    for child in multiprocessing.active_children():
        child.kill()
    see.wait_for(4)
    see.let_go()

    assert len([handle.result(timeout=30) for handle in handles]) == 6
    assert all(other.result(timeout=30) for other in others)
    assert pool.stats().replaced == 2


@each_kind
def test_a_queue_that_cannot_be_reached_does_not_keep_the_others_waiting(
    make_two: Callable[..., Any], pools: Pools, see: Any, kind: Any
) -> None:
    app = make_two(url="redis://127.0.0.1:1")
    app.hold.submit_many(numbers(2))

    pool = pools([app.other, app.queue], 2, kind, strict=True)
    pool.start()

    see.wait_for(2)
    wait_until(lambda: pool.stats().failures > 0, 20, "a failure to be counted")
    see.let_go()
    app.queue.wait(timeout=20)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_server_that_never_answers_does_not_keep_the_other_queue_waiting(
    make_two: Callable[..., Any], pools: Pools, see: Any, kind: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        app = make_two(url=f"redis://127.0.0.1:{mute.getsockname()[1]}")
        app.hold.submit_many(numbers(2))
        pool = pools([app.other, app.queue], 2, kind, strict=True)

        pool.start()

        see.wait_for(2)
        see.let_go()
        app.queue.wait(timeout=20)
        pool.stop(hot=True)


@each_kind
def test_it_ends_until_empty_only_when_no_task_has_fed_another_queue(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.pass_on.submit(20)
    pool = pools(app.both, 2, kind)

    pool.start(until_empty=True)

    assert pool.wait(timeout=40)
    assert len(see.begun()) == 21
    assert [queue.counts().unfinished for queue in app.both] == [0, 0]


@each_kind
def test_scaling_changes_how_many_run_in_all_queues_together(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    app.hold.submit_many(numbers(4))
    app.hold_other.submit_many(numbers(4))
    pool = pools(app.both, 1, kind)
    pool.start()
    see.wait_for(1)

    pool.scale(4)
    see.wait_for(4)
    wait_until(lambda: pool.stats().running == 4, 20, "four to run")
    assert Counter(map(is_first, see.begun())) == {True: 2, False: 2}
    pool.scale(1, hot=True)
    wait_until(lambda: pool.stats().running == 1, 20, "three to be handed back")
    see.let_go()

    for queue in app.both:
        queue.wait(timeout=30)


@each_kind
def test_quick_scales_under_load_lose_nothing_of_either_queue(
    app: Any, pools: Pools, kind: Any
) -> None:
    draw, most = Random(1000), 3 if kind == "processes" else 8
    app.add.submit_many([(n, 0) for n in range(2000)])
    app.note_other.submit_many(numbers(2000))
    pool = pools(app.both, most, kind, weights=[1, 2])
    pool.start()
    wait_until(lambda: pool.stats().taken, 20, "the load to begin")

    for _ in range(100):
        pool.scale(draw.randint(1, most), hot=draw.random() < 0.5)
    pool.scale(2)

    for queue in app.both:
        queue.wait(timeout=60)
        counts = queue.counts()
        assert (counts.stats["done"], counts.tasks, counts.assigned) == (2000, 0, 0)
    assert pool.stats().refused == pool.stats().zombies == 0
    pool.stop()
    assert [queue.counts().leases for queue in app.both] == [{}, {}]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_task_that_cannot_be_stopped_does_not_keep_its_worker_from_either_queue(
    app: Any, pools: Pools, see: Any, kind: Any
) -> None:
    deaf = app.deaf.submit()
    pool = pools(app.both, 1, kind)
    pool.start()

    with pytest.raises(TaskFailed, match="TimeoutError"):
        deaf.result(timeout=40)
    assert app.note_other.submit(1).result(timeout=20) == 1
    assert app.note.submit(1).result(timeout=20) == 1
    assert pool.stats().zombies == 1
    see.wake()


def test_a_pool_scales_to_the_backlog_of_all_queues(
    app: Any, pools: Pools, see: Any
) -> None:
    app.hold.submit_many(numbers(20))
    app.hold_other.submit_many(numbers(20))
    rule = Autoscale(least=1, most=8, backlog=10)
    pool = pools(app.both, 1, "threads", autoscale=rule)

    pool.start()

    wait_until(lambda: pool.workers == 4, 20, "one worker per ten tasks")
    assert pool.stats().waiting == 40
    see.let_go()


@each_kind
def test_a_task_beyond_its_time_limit_is_stopped_in_the_second_queue_too(
    app: Any, pools: Pools, kind: Any
) -> None:
    endless = app.endless_other.submit()
    others = app.note.submit_many(numbers(20))

    pools(app.both, 1, kind).start()

    with pytest.raises(TaskFailed, match="TimeoutError"):
        endless.result(timeout=40)
    assert [handle.result(timeout=20) for handle in others] == list(range(20))


def test_a_process_is_replaced_after_so_many_tasks_of_all_queues(
    app: Any, pools: Pools
) -> None:
    pool = pools(app.both, 1, "processes", max_tasks=4)
    pool.start()

    pids = [
        task.submit().result(timeout=30)
        for _ in range(4)
        for task in (app.who, app.who_other)
    ]

    assert sorted(Counter(pids).values()) == [4, 4]


_RESOURCES = """
    from collections.abc import AsyncIterator, Iterator
    from typing import Annotated

    from workstealing import Resource


    class Shelf:
        def __init__(self, label: str) -> None:
            self.label = label


    @queue.resource
    def shelf() -> Iterator[Shelf]:
        yield Shelf("first")
        notes.rpush(f"{NAME}:closed", "first")


    @other.resource
    async def other_shelf() -> AsyncIterator[Shelf]:
        if notes.exists(f"{NAME}:broken"):
            raise OSError("no wood")
        yield Shelf("second")
        notes.rpush(f"{NAME}:closed", "second")


    @queue.task(name="label")
    def label(shelf: Annotated[Shelf, Resource]) -> str:
        return shelf.label


    @other.task(name="label")
    async def label_other(shelf: Annotated[Shelf, Resource]) -> str:
        return shelf.label
"""


@each_kind
def test_each_queue_has_its_own_resources(
    make_two: Callable[..., Any], pools: Pools, kind: Any
) -> None:
    app = make_two(more=_RESOURCES)
    pool = pools(app.both, 1, kind)
    pool.start()

    assert app.label.submit().result(timeout=20) == "first"
    assert app.label_other.submit().result(timeout=20) == "second"
    pool.stop()
    closed = app.notes.lrange(f"{app.NAME}:closed", 0, -1)
    assert sorted(closed) == [b"first", b"second"]


@each_kind
def test_a_resource_of_the_second_queue_that_fails_to_open_stops_the_pool(
    make_two: Callable[..., Any], pools: Pools, kind: Any
) -> None:
    app = make_two(more=_RESOURCES)
    app.notes.set(f"{app.NAME}:broken", 1)
    pool = pools(app.both, 1, kind)

    def work() -> None:
        pool.start()
        pool.wait(timeout=40)

    with pytest.raises(ResourceFailed, match="no wood"):
        work()

    assert [queue.counts().leases for queue in app.both] == [{}, {}]


async def test_in_the_callers_event_loop_it_runs_tasks_of_all_queues(app: Any) -> None:
    async with WorkerPool(app.both, 2, "asyncio") as pool:
        handles = [app.add_later.submit(1, 2), app.note_other.submit(4)]
        results = await asyncio.gather(
            *(asyncio.to_thread(handle.result, 20) for handle in handles)
        )

    assert results == [3, 4]
    assert pool.stats().taken == 2


@pytest.mark.parametrize(
    ("queues", "options", "sentence"),
    [
        ([], {}, "a pool needs a queue, and the list is empty"),
        ("twice", {}, "is given twice"),
        (["app"], {}, "needs the TaskQueue whose tasks it runs, got 'app'"),
        ("both", {"weights": [1]}, "one number for each queue, 2 in all"),
        ("both", {"weights": "31"}, "one number for each queue, 2 in all"),
        ("both", {"weights": [1, 0]}, "the weight of a queue must be above 0"),
        ("both", {"weights": [1, "x"]}, "the weight of a queue must be a number"),
        ("both", {"weights": [3, 1], "strict": True}, "exclude each other"),
    ],
)
def test_queues_and_weights_that_make_no_sense_are_refused(
    app: Any, queues: Any, options: Any, sentence: str
) -> None:
    given = {"both": app.both, "twice": [*app.both, app.queue]}
    chosen = given[queues] if isinstance(queues, str) else queues

    with pytest.raises(ConfigurationError, match=sentence):
        WorkerPool(chosen, **options)
