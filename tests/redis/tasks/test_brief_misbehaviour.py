"""What a brief task, its host or an operator may do to a spare moment."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from workstealing import (
    AsyncBriefTasks,
    AsyncRecruiter,
    AsyncTaskQueue,
    BriefTasks,
    Duty,
    ExecutionContext,
    Recruiter,
    TaskQueue,
    Worker,
    WorkStealer,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import TaskFailed
from workstealing.queue.producer_calls import submit
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until

Make = Callable[..., TaskQueue]


@pytest.fixture
def queue(make_queue: Make, redis_client: Any) -> TaskQueue:
    # Side work waits 50 ms for a reply, which is too short on a busy machine.
    return make_queue(redis_client, lease=1.0)


@pytest.fixture
def make_spare() -> Iterator[Callable[..., BriefTasks]]:
    made: list[BriefTasks] = []

    def make(queue: TaskQueue) -> BriefTasks:
        made.append(BriefTasks(queue))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def spare(queue: TaskQueue, make_spare: Callable[..., BriefTasks]) -> BriefTasks:
    return make_spare(queue)


def recruiter_of(job: Any, **options: Any) -> Recruiter:
    recruiter = Recruiter(**{"share": None, "deadline": 5.0, **options})
    recruiter.install(job, "tasks", rate=1.0)
    return recruiter


def locks_of(queue: TaskQueue) -> int:
    internals = internals_of(queue)
    client: Any = internals.driver.client
    return int(client.hlen(internals.keys.lock))


def test_a_task_that_exits_fails_and_its_host_goes_on(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="exit", brief=True)
    def leave() -> None:
        sys.exit(3)

    class Strange(BaseException):
        pass

    @queue.task(name="strange", brief=True)
    def strange() -> None:
        raise Strange("nobody derives from that")

    handles = [leave.submit(), strange.submit()]
    recruiter = recruiter_of(spare)
    assert [recruiter.enlist(), recruiter.enlist()] == [Duty.RECRUITED] * 2
    for handle, error in zip(handles, ("SystemExit", "Strange"), strict=True):
        with pytest.raises(TaskFailed, match=error):
            handle.result(timeout=5)


def test_a_coroutine_that_exits_fails_and_neither_its_host_nor_the_next_one_does(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="exit", brief=True)
    async def leave(is_late: bool) -> None:
        if is_late:
            await asyncio.sleep(0)
        sys.exit(3)

    @queue.task(name="innocent", brief=True)
    async def innocent() -> str:
        return "ran"

    recruiter = recruiter_of(spare)
    for is_late in (False, True):
        handles: list[Any] = [leave.submit(is_late), innocent.submit()]
        wait_until(
            lambda: recruiter.enlist() and not queue.counts().unfinished, 20, "both"
        )
        with pytest.raises(TaskFailed, match="SystemExit"):
            handles[0].result(timeout=5)
        assert handles[1].result(timeout=5) == "ran"


async def test_a_coroutine_that_exits_does_not_end_its_asyncio_host(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue

    @queue.task(name="exit", brief=True)
    async def leave(is_late: bool) -> None:
        if is_late:
            await asyncio.sleep(0)
        sys.exit(3)

    handles = [await leave.submit(is_late) for is_late in (False, True)]
    recruiter, spare = AsyncRecruiter(share=None, deadline=5.0), AsyncBriefTasks(queue)
    recruiter.install(spare, "tasks", rate=1.0)
    for _ in range(4):
        await recruiter.enlist()

    for handle in handles:
        with pytest.raises(TaskFailed, match="SystemExit"):
            await handle.result(timeout=5)
    await spare.close()


def test_a_task_that_forks_is_reported_once(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="fork", brief=True)
    def fork() -> str:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return "the parent" if child else "the child"

    handle = fork.submit()
    me = os.getpid()
    assert recruiter_of(spare).enlist() is Duty.RECRUITED
    assert os.getpid() == me
    assert handle.result(timeout=5) == "the parent"
    assert queue.counts().stats["done"] == 1


def test_a_coroutine_that_ignores_its_cancellation_is_not_run_beside_itself(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    begun: list[int] = []

    @queue.task(name="deaf", brief=True)
    async def deaf(context: ExecutionContext) -> int:
        begun.append(context.attempt)
        for _ in range(100):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue
        return 0

    handle = deaf.submit()
    recruiter = recruiter_of(spare, deadline=0.1)
    recruiter.enlist()
    recruiter.enlist()

    assert begun == [1]
    assert handle.state().state is State.RUNNING, "until its lease has ended"
    assert locks_of(queue) == 1


def test_what_came_with_a_coroutine_that_ignores_its_cancellation_goes_back_at_once(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    begun: list[int] = []

    @queue.task(name="deaf", brief=True)
    async def deaf(number: int) -> int:
        begun.append(number)
        for _ in range(100 if begun.count(1) == 1 and number == 1 else 0):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue
        return number

    recruiter = recruiter_of(spare, deadline=0.3)
    first = deaf.submit(-1)
    wait_until(
        lambda: recruiter.enlist() and first.state().state is State.DONE, 20, "it"
    )
    handles = [deaf.submit(number) for number in range(4)]
    wait_until(lambda: recruiter.enlist() and 1 in begun, 20, "the task to begin")

    states = [each.state().state for each in handles]
    assert states == [State.DONE, State.RUNNING, State.WAITING, State.WAITING]
    assert locks_of(queue) == 1
    Worker(queue).run(until_empty="all")
    assert [each.result(timeout=5) for each in handles] == list(range(4))
    assert queue.counts().stats["reassigned"] == 1


async def test_an_asyncio_host_leaves_behind_a_coroutine_that_ignores_it(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue
    begun: list[int] = []
    is_over = asyncio.Event()

    @queue.task(name="deaf", brief=True)
    async def deaf() -> None:
        begun.append(1)
        while not is_over.is_set():
            try:
                await is_over.wait()
            except asyncio.CancelledError:
                continue

    handle = await deaf.submit()
    recruiter = AsyncRecruiter(share=None, deadline=0.1)
    spare = AsyncBriefTasks(queue)
    recruiter.install(spare, "tasks", rate=1.0)
    for _ in range(3):
        await recruiter.enlist()
    assert begun == [1]
    assert (await handle.state()).state is State.RUNNING
    is_over.set()
    await spare.close()


async def test_a_coroutine_that_cleans_up_is_handed_back_and_not_begun_again(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue
    begun: list[int] = []

    @queue.task(name="tidy", brief=True)
    async def tidy(number: int) -> None:
        begun.append(number)
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.005)

    handles = [await tidy.submit(number) for number in range(3)]
    recruiter = AsyncRecruiter(share=None, deadline=0.8)
    spare = AsyncBriefTasks(queue)
    recruiter.install(spare, "tasks", rate=1.0)
    for _ in range(3):
        await recruiter.enlist()

    assert begun == [0]
    states = [(await each.state()).state for each in handles]
    assert states == [State.WAITING] * 3
    await spare.close()


async def test_a_coroutine_that_blocks_its_host_beyond_its_slice_is_not_begun_again(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue
    begun: list[int] = []

    @queue.task(name="blocking", brief=True)
    async def blocking(number: int) -> None:
        begun.append(number)
        time.sleep(0.4)
        await asyncio.sleep(30)

    handles = [await blocking.submit(number) for number in range(3)]
    recruiter = AsyncRecruiter(share=None, breaker=None, deadline=0.3)
    spare = AsyncBriefTasks(queue)
    recruiter.install(spare, "tasks", rate=1.0)
    for _ in range(3):
        await recruiter.enlist()

    assert begun == [0]
    states = [(await each.state()).state for each in handles]
    assert states == [State.WAITING] * 3
    internals = internals_of(queue.sync())
    client: Any = internals.driver.client
    assert client.hkeys(internals.keys.too_long) == [handles[0].id.encode()]
    await spare.close()


def test_what_outlasts_a_slice_and_is_tried_again_is_left_to_workers(
    queue: TaskQueue, make_spare: Callable[..., BriefTasks], redis_client: Any
) -> None:
    begun: list[int] = []

    @queue.task(name="slow", brief=True, retries=3)
    def slow() -> None:
        begun.append(1)
        time.sleep(0.2)
        raise ValueError("not yet")

    handle = slow.submit()
    recruiter_of(make_spare(queue), deadline=0.1).enlist()
    recruiter_of(make_spare(queue), deadline=0.1).enlist()

    assert begun == [1]
    keys = internals_of(queue).keys
    assert redis_client.hkeys(keys.too_long) == [handle.id.encode()]


async def test_a_cancelled_host_leaves_behind_a_coroutine_that_ignores_it(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue
    begun: list[int] = []
    has_begun, is_over = asyncio.Event(), asyncio.Event()

    @queue.task(name="deaf", brief=True)
    async def deaf() -> None:
        begun.append(1)
        has_begun.set()
        while not is_over.is_set():
            try:
                await is_over.wait()
            except asyncio.CancelledError:
                continue

    handle = await deaf.submit()
    spare = AsyncBriefTasks(queue)
    host = asyncio.create_task(spare.recruited())
    await has_begun.wait()
    host.cancel()
    with pytest.raises(asyncio.CancelledError):
        await host
    await spare.recruited()
    assert begun == [1]
    assert (await handle.state()).state is State.RUNNING
    is_over.set()
    await spare.close()


async def test_a_thread_that_its_asyncio_host_left_behind_begins_nothing_more(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    ran: list[int] = []
    host_goes_on = threading.Event()

    @queue.task(name="visit", brief=True)
    def visit(number: int) -> None:
        ran.append(number)
        host_goes_on.wait(30)

    for number in range(100):
        visit.submit(number)
    recruiter = AsyncRecruiter(share=None, deadline=0.3)
    recruiter.install(spare, "tasks", rate=1.0)
    await recruiter.enlist()
    host_goes_on.set()

    def is_at_rest() -> bool:
        return locks_of(queue) == 0 and queue.counts().stats.get("done", 0) > 0

    await asyncio.to_thread(wait_until, is_at_rest, 30, "the thread to report")
    assert ran == [0]


def test_a_plain_function_that_hangs_is_handed_back_at_the_hard_deadline(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    begun: list[int] = []

    @queue.task(name="endless", brief=True)
    def endless(context: ExecutionContext) -> int:
        begun.append(context.attempt)
        while len(begun) == 1:
            time.sleep(0.001)
        return context.attempt

    handle = endless.submit()
    recruiter = recruiter_of(spare, deadline=0.1, hard_deadline=0.2)
    recruiter.enlist()
    recruiter.enlist()
    assert begun == [1]
    assert handle.state().state is State.WAITING
    Worker(queue).run(until_empty=True)
    assert handle.result(timeout=5) == 1, "no attempt was counted"


def test_no_batch_outlives_its_lease(queue: TaskQueue, spare: BriefTasks) -> None:
    ran: list[int] = []

    @queue.task(name="middling", brief=True)
    def middling(number: int) -> None:
        ran.append(number)
        time.sleep(0.1)

    recruiter = recruiter_of(spare)
    middling.submit(-1)
    recruiter.enlist()
    for number in range(15):
        middling.submit(number)
    upkeep = recruiter_of(WorkStealer(queue))
    is_over = threading.Event()

    def keep_up() -> None:
        while not is_over.is_set():
            upkeep.enlist()
            is_over.wait(0.01)

    thread = threading.Thread(target=keep_up)
    thread.start()
    wait_until(
        lambda: recruiter.enlist() and not queue.counts().unfinished, 30, "the tasks"
    )
    is_over.set()
    thread.join()

    assert sorted(ran) == list(range(-1, 15))
    assert "reassigned" not in queue.counts().stats


def test_a_function_that_outlasts_its_lease_is_not_run_beside_itself(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    begun: list[int] = []
    client: Any = internals_of(queue).driver.client
    upkeep, is_over = recruiter_of(WorkStealer(queue)), threading.Event()

    def keep_up() -> None:
        while not is_over.is_set():
            upkeep.enlist()
            is_over.wait(0.01)

    @queue.task(name="long", brief=True)
    def long(number: int) -> int:
        if number == 1:
            begun.append(number)
            at_first = client.time()[0]
            wait_until(lambda: client.time()[0] > at_first + 2, 30, "its first lease")
        return number

    recruiter = recruiter_of(spare)
    long.submit(-1)
    recruiter.enlist()
    handles = [long.submit(number) for number in range(3)]
    thread = threading.Thread(target=keep_up)
    thread.start()
    wait_until(
        lambda: recruiter.enlist() and not queue.counts().unfinished, 30, "the tasks"
    )
    is_over.set()
    thread.join()

    assert begun == [1]
    assert [each.result(timeout=5) for each in handles] == [0, 1, 2]
    assert "reassigned" not in queue.counts().stats


def test_a_running_function_learns_that_it_was_cancelled(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="patient", brief=True)
    def patient(context: ExecutionContext) -> None:
        queue.handle(context.id).cancel()
        wait_until(lambda: context.cancelled, 30, "it to learn of that")
        context.check()

    handle = patient.submit()
    recruiter_of(spare).enlist()
    assert handle.state().state is State.CANCELLED


def test_a_running_function_learns_that_others_have_its_task(
    queue: TaskQueue, spare: BriefTasks, redis_client: Any
) -> None:
    internals = internals_of(queue)
    keys, client = internals.keys, redis_client
    learnt: list[bool] = []

    @queue.task(name="patient", brief=True)
    def patient(context: ExecutionContext) -> None:
        if context.worker.startswith("brief-"):
            client.delete(keys.running(context.worker))
            wait_until(lambda: context.lease_lost, 30, "it to learn of that")
            learnt.append(True)
            client.hdel(keys.lock, context.id)
            client.rpush(keys.inboxes[1], context.id)
            context.check()

    handle = patient.submit()
    recruiter_of(spare).enlist()
    assert learnt == [True]
    assert handle.state().state is State.WAITING


def test_a_host_that_is_interrupted_hands_back_what_came_with_the_task_at_once(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="interrupted", brief=True)
    def interrupted(number: int) -> int:
        if number == 3 and is_host[0]:
            raise KeyboardInterrupt
        return number

    is_host, recruiter = [True], recruiter_of(spare)
    interrupted.submit(-1)
    recruiter.enlist()
    handles = [interrupted.submit(number) for number in range(10)]
    with pytest.raises(KeyboardInterrupt):
        recruiter.enlist()

    assert locks_of(queue) == 0
    assert [each.state().state for each in handles[:4]] == [
        *(State.DONE,) * 3,
        State.WAITING,
    ]
    is_host[0] = False
    Worker(queue).run(until_empty=True)
    assert [each.result(timeout=5) for each in handles] == list(range(10))


def test_a_job_that_is_closed_in_mid_slice_runs_nothing_beside_itself(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    ran: list[int] = []
    has_begun = threading.Event()

    @queue.task(name="slow", brief=True)
    def slow(number: int) -> None:
        ran.append(number)
        if number >= 0:
            has_begun.set()
            time.sleep(0.02)

    recruiter = recruiter_of(spare)
    slow.submit(-1)
    recruiter.enlist()
    for number in range(10):
        slow.submit(number)
    host = threading.Thread(target=recruiter.enlist)
    host.start()
    has_begun.wait(30)
    spare.close()
    host.join()
    Worker(queue).run(until_empty=True)

    assert sorted(ran) == list(range(-1, 10))


def test_a_job_that_is_closed_while_a_coroutine_blocks_leaves_it_its_event_loop(
    queue: TaskQueue, spare: BriefTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, is_closed = threading.Event(), threading.Event()
    monkeypatch.setattr("workstealing.workers.brief_tasks._CLOSE_SECONDS", 0.01)

    @queue.task(name="blocks", brief=True)
    async def blocks() -> str:
        has_begun.set()
        is_closed.wait(30)
        return "ran"

    handle = blocks.submit()
    host = threading.Thread(target=recruiter_of(spare).enlist)
    host.start()
    has_begun.wait(30)
    spare.close()
    is_closed.set()
    host.join()

    assert handle.result(timeout=5) == "ran"


async def test_an_asyncio_job_that_is_closed_in_mid_slice_lets_it_end(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue
    has_begun, is_closing = asyncio.Event(), asyncio.Event()

    @queue.task(name="slow", brief=True)
    async def slow() -> str:
        has_begun.set()
        await is_closing.wait()
        await asyncio.wait({closing}, timeout=0.1)
        return "closed before" if closing.done() else "ran"

    handle = await slow.submit()
    spare = AsyncBriefTasks(queue)
    host = asyncio.create_task(spare.recruited())
    await has_begun.wait()
    closing = asyncio.create_task(spare.close())
    is_closing.set()
    await closing
    await host
    assert await handle.result(timeout=5) == "ran"


def test_large_results_are_reported_a_few_at_a_time(
    queue: TaskQueue, spare: BriefTasks, redis_client: Any
) -> None:
    @queue.task(name="large", brief=True)
    def large() -> str:
        return "x" * 20_000

    recruiter = recruiter_of(spare)
    for _ in range(60):
        large.submit()
    wait_until(
        lambda: recruiter.enlist() and not queue.counts().unfinished, 30, "the tasks"
    )
    stats = queue.counts().stats
    assert stats["done"] == 60
    assert stats["brief"] < 150, "few were taken in vain"


def test_what_its_producer_forbids_to_run_twice_is_left_to_workers(
    queue: TaskQueue, make_spare: Callable[..., BriefTasks]
) -> None:
    begun: list[int] = []

    @queue.task(name="once", brief=True)
    def once(context: ExecutionContext) -> None:
        begun.append(context.attempt)
        if len(begun) == 1:
            raise KeyboardInterrupt

    # The definition refuses that; another program, or another release, may not.
    envelope = b'{"v":1,"name":"once","version":1,"payload":{},"restart": "never"}'
    internals = internals_of(queue)
    tasks = [("a", envelope)]
    internals.driver.call(submit(internals.keys, internals.settings, tasks, priority=1))
    for _ in range(2):
        recruiter_of(make_spare(queue)).enlist()
    assert begun == []

    assert queue.handle("a").state().state is State.WAITING
    with suppress(KeyboardInterrupt):
        Worker(queue).run(until_empty=True)
    assert begun == [1]


def test_what_was_cancelled_is_not_tried_again(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    begun: list[int] = []

    @queue.task(name="stubborn", brief=True, retries=3)
    def stubborn(context: ExecutionContext) -> None:
        begun.append(context.attempt)
        queue.handle(context.id).cancel()
        raise ValueError("again")

    handle = stubborn.submit()
    recruiter = recruiter_of(spare)
    wait_until(
        lambda: recruiter.enlist() and handle.state().state is State.CANCELLED,
        20,
        "the task to be cancelled",
    )
    assert begun == [1]


def test_cancelled_tasks_at_the_front_do_not_stop_the_others(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="brief", brief=True)
    def brief() -> str:
        return "ran"

    for handle in [brief.submit() for _ in range(30)]:
        handle.cancel()
    last = brief.submit()
    recruiter_of(spare).enlist()
    assert last.result(timeout=5) == "ran"


def test_what_a_process_died_with_is_run_by_another_if_there_is_no_worker(
    queue: TaskQueue, make_spare: Callable[..., BriefTasks]
) -> None:
    @queue.task(name="fatal", brief=True)
    def fatal(is_fatal: bool) -> str:
        if is_fatal and os.getpid() != me:
            os._exit(1)
        return "ran"

    me = os.getpid()
    handle = fatal.submit(True)
    child = os.fork()
    if not child:
        recruiter_of(BriefTasks(queue)).enlist()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    recruiter = Recruiter(share=None, deadline=5.0)
    recruiter.install(make_spare(queue), "tasks", rate=0.5)
    recruiter.install(WorkStealer(queue), "upkeep", rate=0.5)
    wait_until(
        lambda: recruiter.enlist() and handle.state().state is State.DONE,
        30,
        "another process to run it",
    )
    assert handle.result(timeout=5) == "ran"
    assert queue.counts().stats["reassigned"] == 1


def test_what_a_process_died_with_is_left_to_workers_if_there_are_any(
    make_queue: Make, redis_client: Any, make_spare: Callable[..., BriefTasks]
) -> None:
    queue = make_queue(redis_client)

    @queue.task(name="fatal", brief=True)
    def fatal() -> str:
        return "ran"

    handle = fatal.submit()
    internals = internals_of(queue)
    keys, client = internals.keys, redis_client
    client.hset(keys.history, handle.id, "0:1:0:")
    client.hset(keys.members, "some.0", "1|{}")
    recruiter = recruiter_of(make_spare(queue))
    assert recruiter.enlist() is Duty.DISMISSED
    client.hdel(keys.members, "some.0")
    assert recruiter.enlist() is Duty.RECRUITED
    assert handle.result(timeout=5) == "ran"


def test_several_threads_share_one_recruiter(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="brief", brief=True)
    def brief(number: int) -> int:
        return number

    handles = [brief.submit(number) for number in range(60)]
    recruiter, errors = recruiter_of(spare, deadline=0.05), []

    def serve() -> None:
        try:
            while queue.counts().unfinished:
                recruiter.enlist()
                spare.recruited()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert [each.result(timeout=5) for each in handles] == list(range(60))
    assert queue.counts().stats["done"] == 60


def test_a_forked_child_works_under_a_name_of_its_own(
    make_queue: Make, make_spare: Callable[..., BriefTasks]
) -> None:
    queue = make_queue()

    @queue.task(name="who", brief=True)
    async def who(context: ExecutionContext) -> str:
        await asyncio.sleep(0)
        return context.worker

    spare = make_spare(queue)
    recruiter = recruiter_of(spare)
    first = who.submit()
    wait_until(
        lambda: recruiter.enlist() and first.state().state is State.DONE, 20, "it"
    )
    second = who.submit()
    child = os.fork()
    if not child:
        try:
            wait_until(
                lambda: recruiter.enlist() and second.state().state is State.DONE,
                20,
                "it",
            )
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    third = who.submit()
    wait_until(
        lambda: recruiter.enlist() and third.state().state is State.DONE, 20, "it"
    )
    names = [each.result(timeout=5) for each in (first, second, third)]
    assert names[0] == names[2] != names[1]
