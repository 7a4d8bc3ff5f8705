"""Tasks that end in ways that no task should: each is told of, and none stays."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from workstealing import Recruiter, TaskQueue, WorkerPool
from workstealing.errors import PoolBroken, StopWork, TaskDead, TaskFailed
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

Pools = Callable[..., WorkerPool]

IN_THIS_PROCESS = pytest.mark.parametrize("kind", ["threads", "asyncio"])


class NastyError(Exception):
    """Ends whoever wants to describe it."""

    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Any:
    queue = TaskQueue(key_prefix, redis_server.url, max_result=1000)
    yield queue
    queue.close()


@IN_THIS_PROCESS
@pytest.mark.parametrize("is_awaited", [False, True])
def test_who_stops_unasked_has_failed(
    queue: TaskQueue, pools: Pools, kind: str, is_awaited: bool
) -> None:
    def stop() -> None:
        raise StopWork("enough")

    async def stop_awaited() -> None:
        raise StopWork("enough")

    task = queue.task(name="stop")(stop_awaited if is_awaited else stop)
    pools(queue, 2, kind).start()

    with pytest.raises(TaskFailed, match="StopWork"):
        task.submit().result(timeout=10)
    assert "back" not in queue.counts().stats


@IN_THIS_PROCESS
def test_an_error_that_cannot_be_described_leaves_its_slot_at_work(
    queue: TaskQueue, pools: Pools, kind: str
) -> None:
    @queue.task(name="nasty")
    def nasty() -> None:
        raise NastyError

    @queue.task(name="fine")
    def fine() -> str:
        return "fine"

    pools(queue, 1, kind).start()

    with pytest.raises((TaskFailed, TaskDead)):
        nasty.submit().result(timeout=10)
    assert fine.submit().result(timeout=10) == "fine"


def test_a_coroutine_that_is_cancelled_from_within_has_failed_though_its_slot_leaves(
    queue: TaskQueue, pools: Pools
) -> None:
    go = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    @queue.task(name="cancelled")
    async def cancelled() -> None:
        loops.append(asyncio.get_running_loop())
        await go.wait()
        raise asyncio.CancelledError

    pool = pools(queue, 3, "asyncio")
    pool.start()
    handles = [cancelled.submit() for _ in range(3)]
    wait_until(lambda: len(loops) == 3, 10, "all to run")

    pool.scale(1)
    loops[0].call_soon_threadsafe(go.set)

    for handle in handles:
        with pytest.raises(TaskFailed, match="CancelledError"):
            handle.result(timeout=10)


@IN_THIS_PROCESS
def test_a_result_that_is_too_large_is_a_failure_that_says_so(
    queue: TaskQueue, pools: Pools, kind: str
) -> None:
    @queue.task(name="large")
    def large(size: int) -> str:
        return "x" * size

    pools(queue, 1, kind).start()

    assert large.submit(900).result(timeout=10) == "x" * 900
    with pytest.raises(TaskFailed, match=r"1,003 bytes, and the queue takes 1,000"):
        large.submit(1001).result(timeout=10)


def test_processes_survive_many_that_crash_at_once(app: Any, pools: Pools) -> None:
    fatal = [app.poison.submit() for _ in range(3)]
    others = app.add.submit_many([(n, 0) for n in range(50)])

    pools(app.queue, 2, "processes").start()

    assert [handle.result(timeout=40) for handle in others] == list(range(50))
    for handle in fatal:
        with pytest.raises(TaskDead, match="died 3 times"):
            handle.result(timeout=40)


def test_in_a_process_an_interrupt_is_the_task_s_own(
    make_app: Callable[..., Any], pools: Pools
) -> None:
    app = make_app(
        more="""
        @queue.task(name="interrupt")
        def interrupt() -> None:
            raise KeyboardInterrupt
        """
    )
    pools(app.queue, 1, "processes").start()

    with pytest.raises(TaskFailed, match="KeyboardInterrupt"):
        app.interrupt.submit().result(timeout=40)
    assert app.add.submit(1, 2).result(timeout=10) == 3


def test_tasks_of_an_event_loop_that_its_owner_ends_go_back(queue: TaskQueue) -> None:
    begun: list[int] = []

    @queue.task(name="endless")
    async def endless() -> None:
        begun.append(1)
        await asyncio.sleep(1000)

    handles = [endless.submit() for _ in range(2)]

    async def own_loop() -> None:
        async with WorkerPool(queue, 2, "asyncio"):
            while len(begun) < 2:
                await asyncio.sleep(0.01)
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(own_loop())

    if sys.version_info >= (3, 11):
        assert [handle.state().state for handle in handles] == [State.WAITING] * 2


@IN_THIS_PROCESS
@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_side_work_that_raises_anything_does_not_end_a_pool(
    queue: TaskQueue, pools: Pools, kind: str, error: type[BaseException]
) -> None:
    @queue.task(name="fine")
    def fine() -> str:
        return "fine"

    recruiter, begun = Recruiter(share=None), Event()

    @recruiter.job(rate=1.0)
    def end() -> None:
        begun.set()
        raise error

    pools(queue, 1, kind, recruiter=recruiter).start()
    assert begun.wait(10)

    assert fine.submit().result(timeout=10) == "fine"


def test_a_time_limit_of_a_process_spares_the_next_task(app: Any, pools: Pools) -> None:
    once = [(app.endless.submit(), app.quick_once.submit(n)) for n in range(12)]
    pools(app.queue, 2, "processes").start()

    for endless, quick in once:
        with pytest.raises(TaskFailed, match="longer than"):
            endless.result(timeout=40)
        assert quick.result(timeout=40) == 1


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_task_that_stops_its_event_loop_stops_nothing_else(
    queue: TaskQueue, pools: Pools, kind: str
) -> None:
    @queue.task(name="stop_loop")
    async def stop_loop() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "went on"

    @queue.task(name="exit_loop")
    async def exit_loop() -> None:
        asyncio.get_running_loop().call_soon(_exit)
        await asyncio.sleep(0)

    pool = pools(queue, 2, kind)
    pool.start()

    assert [stop_loop.submit().result(timeout=10) for _ in range(3)] == ["went on"] * 3
    if kind == "asyncio":
        exit_loop.submit().result(timeout=10)
        assert stop_loop.submit().result(timeout=10) == "went on"
    assert pool.stop() == 0


def _exit() -> None:
    raise SystemExit(3)


def test_a_pool_whose_event_loop_is_closed_ends_and_says_so(
    queue: TaskQueue, pools: Pools
) -> None:
    begun = Event()

    @queue.task(name="close_loop")
    async def close_loop() -> None:
        loop = asyncio.get_running_loop()
        # As if it had been closed: what runs cannot be.
        loop.run_forever = loop.close  # type: ignore[method-assign]
        loop.stop()
        begun.set()
        await asyncio.Event().wait()

    pool = pools(queue, 1, "asyncio", name="mill")
    pool.start()
    handle = close_loop.submit()
    assert begun.wait(10)

    with pytest.raises(PoolBroken, match="event loop"):
        pool.wait(timeout=20)
    # Others may have its tasks at once.
    wait_until(lambda: "mill.0" not in queue.counts().leases, 10, "it to leave")
    assert handle.state().state is State.WAITING


@pytest.mark.parametrize("kind", ["threads", "asyncio", "worker"])
@pytest.mark.parametrize("task", ["close_all", "close_all_later"])
def test_a_worker_whose_files_were_closed_by_a_task_ends(
    script: Callable[..., Any], kind: str, task: str
) -> None:
    process = script(
        f"""
        import os
        from workstealing import Worker, WorkerPool
        from APP import queue

        @queue.task(name="close_all")
        def close_all() -> None:
            os.closerange(3, 256)

        @queue.task(name="close_all_later")
        async def close_all_later() -> None:
            os.closerange(3, 256)

        if __name__ == "__main__":
            {task}.submit()
            if {kind!r} == "worker":
                Worker(queue).run()
            else:
                pool = WorkerPool(queue, 2, {kind!r})
                pool.start()
                pool.wait()
        """
    )

    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "PoolBroken" in errors, errors


def test_a_process_whose_files_were_closed_by_a_task_is_replaced(
    make_app: Callable[..., Any], pools: Pools
) -> None:
    app = make_app(
        more="""
        @queue.task(name="close_all")
        def close_all() -> str:
            if is_first("closed"):
                os.closerange(3, 256)
            return "did not"
        """
    )
    pool = pools(app.queue, 1, "processes")
    pool.start()

    first = app.who.submit().result(timeout=20)
    app.close_all.submit()
    wait_until(lambda: pool.stats().replaced == 1, 30, "it to be replaced")
    assert app.who.submit().result(timeout=30) != first
