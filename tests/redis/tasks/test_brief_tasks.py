"""Short tasks that are run in spare moments, with no worker or beside some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from workstealing import (
    AccessPolicy,
    AsyncBriefTasks,
    AsyncRecruiter,
    AsyncTaskQueue,
    BriefTasks,
    ClientContext,
    Duty,
    ExecutionContext,
    Limit,
    Recruiter,
    TaskQueue,
    Worker,
    WorkStealer,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError, NotPermitted, TaskFailed
from workstealing.queue.brief_calls import brief_exchange
from workstealing.queue.worker_calls import exchange, join
from workstealing.tasks.attempt import Report
from workstealing.tasks.outcome import State

Make = Callable[..., TaskQueue]


@pytest.fixture
def queue(make_queue: Make, redis_client: Any) -> TaskQueue:
    # Side work waits 50 ms for a reply, which is too short on a busy machine.
    return make_queue(redis_client)


@pytest.fixture
def spare(queue: TaskQueue) -> Iterator[BriefTasks]:
    brief = BriefTasks(queue)
    yield brief
    brief.close()


def recruiter_of(job: Any, deadline: float | None = 5.0) -> Recruiter:
    recruiter = Recruiter(share=None, deadline=deadline)
    recruiter.install(job, "tasks", rate=1.0)
    return recruiter


def drain(recruiter: Recruiter, queue: TaskQueue, left: int = 0) -> None:
    """Enlist until no more is left than that."""
    deadline = time.monotonic() + 30
    while queue.counts().unfinished > left:
        recruiter.enlist()
        assert time.monotonic() < deadline


def keys_left(queue: TaskQueue) -> dict[str, Any]:
    internals = internals_of(queue)
    client: Any = internals.driver.client
    keys = internals.keys
    return {
        "lock": client.hlen(keys.lock),
        "workers": client.zcard(keys.workers),
        "task": client.hlen(keys.task),
        "running": sorted(client.keys(keys.running("*"))),
    }


ENDED = (State.DONE, State.FAILED, State.DEAD)
NOTHING = {"lock": 0, "workers": 0, "task": 0, "running": []}


def test_a_queue_is_drained_without_any_worker(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="double", brief=True)
    def double(number: int) -> int:
        return 2 * number

    handles = [double.submit(number) for number in range(50)]
    drain(recruiter_of(spare), queue)

    assert [each.result(timeout=5) for each in handles] == list(range(0, 100, 2))
    assert queue.counts().stats["brief"] == 50
    assert keys_left(queue) == NOTHING


def test_a_slice_runs_tasks_until_its_time_is_over(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="quick", brief=True)
    def quick() -> None: ...

    for _ in range(5):
        quick.submit()
    assert recruiter_of(spare, deadline=5.0).enlist() is Duty.RECRUITED
    assert queue.counts().unfinished == 0

    for _ in range(5):
        quick.submit()
    assert recruiter_of(spare, deadline=None).enlist() is Duty.RECRUITED
    assert queue.counts().unfinished == 4, "without a deadline it is one at a time"


def test_quick_tasks_share_round_trips(
    queue: TaskQueue, spare: BriefTasks, redis_client: Any
) -> None:
    @queue.task(name="quick", brief=True)
    def quick(number: int) -> int:
        return number

    recruiter = recruiter_of(spare)
    quick.submit(0)
    drain(recruiter, queue)
    handles = quick.submit_many([(number,) for number in range(500)])
    before = redis_client.info("commandstats")["cmdstat_evalsha"]["calls"]
    recruiter.enlist()
    calls = redis_client.info("commandstats")["cmdstat_evalsha"]["calls"] - before

    assert [each.result(timeout=5) for each in handles] == list(range(500))
    assert calls < 100


def test_what_a_slice_has_no_time_for_goes_back_in_order(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    ran: list[int] = []

    @queue.task(name="uneven", brief=True)
    def uneven(number: int, seconds: float) -> None:
        ran.append(number)
        time.sleep(seconds)

    recruiter = recruiter_of(spare, deadline=0.5)
    uneven.submit(-1, 0.0)
    drain(recruiter, queue)
    handles = [uneven.submit(n, 0.6 if n == 2 else 0.0) for n in range(9)]
    while 2 not in ran:
        recruiter.enlist()

    assert ran == [-1, 0, 1, 2]
    assert [each.state().state for each in handles[3:]] == [State.WAITING] * 6
    assert keys_left(queue)["lock"] == 0
    Worker(queue).run(until_empty=True)
    assert ran == [-1, *range(9)]
    assert queue.counts().stats["back"] == 6


def test_only_tasks_that_may_are_taken(queue: TaskQueue, spare: BriefTasks) -> None:
    @queue.task(name="long")
    def long() -> None: ...

    @queue.task(name="brief", brief=True)
    def brief() -> str:
        return "ran"

    held = long.submit()
    handle = brief.submit()
    drain(recruiter_of(spare), queue, left=1)

    assert handle.result(timeout=5) == "ran"
    assert held.state().state is State.WAITING


def test_tasks_with_limits_and_fair_keys_are_taken_in_their_turn(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    ran: list[str] = []

    @queue.task(name="limited", brief=True, limit=Limit(concurrency=1))
    def limited() -> None:
        ran.append("limited")

    @queue.task(name="fair", brief=True, fair_key="customer")
    def fair(customer: str) -> None:
        ran.append(customer)

    for _ in range(3):
        limited.submit()
    for customer in ("ann", "ann", "ann", "bob"):
        fair.submit(customer)
    drain(recruiter_of(spare), queue)

    assert ran.count("limited") == 3
    of_customers = [who for who in ran if who != "limited"]
    assert of_customers.index("bob") < 2, "bob need not wait for all of ann's"
    assert keys_left(queue) == NOTHING


def test_a_limit_without_room_holds_back_brief_tasks(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="limited", brief=True, limit=Limit(concurrency=1))
    def limited() -> str:
        return "ran"

    first, second = limited.submit(), limited.submit()
    internals = internals_of(queue)
    call = brief_exchange(internals.keys, internals.settings, "other.0", ["limited@1"])
    (taken,) = internals.driver.call(call).tasks
    recruiter = recruiter_of(spare)
    assert recruiter.enlist() is Duty.DISMISSED

    back = brief_exchange(
        internals.keys,
        internals.settings,
        "other.0",
        [],
        reports=[Report(taken.id, taken.token, "back")],
    )
    internals.driver.call(back)
    drain(recruiter, queue)
    assert [first.result(timeout=5), second.result(timeout=5)] == ["ran", "ran"]


def test_a_line_that_begins_with_a_long_task_keeps_its_turn(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    ran: list[str] = []

    @queue.task(name="long", fair_key="customer")
    def long(customer: str) -> None:
        ran.append("long")

    @queue.task(name="brief", brief=True, fair_key="customer")
    def brief(customer: str) -> None:
        ran.append("brief")

    long.submit("ann")
    brief.submit("bob")
    assert recruiter_of(spare).enlist() is Duty.DISMISSED
    Worker(queue).run(until_empty=True)
    assert ran == ["long", "brief"]


def test_an_empty_queue_is_no_work(queue: TaskQueue, spare: BriefTasks) -> None:
    assert spare.recruited() is Duty.DISMISSED

    @queue.task(name="brief", brief=True)
    def brief() -> None: ...

    assert spare.recruited() is Duty.DISMISSED
    assert keys_left(queue) == NOTHING


def test_a_task_is_taken_from_the_back_of_a_deque(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="brief", brief=True)
    def brief(number: int) -> int:
        return number

    handles = [brief.submit(number) for number in range(4)]
    internals = internals_of(queue)
    keys, settings, driver = internals.keys, internals.settings, internals.driver
    for worker in ("busy.0", "other.0"):
        driver.call(join(keys, settings, worker, "1", {"abilities": ["brief@1"]}))
    driver.call(exchange(keys, settings, "busy.0", "1", want=1, keep=10))
    client: Any = driver.client
    assert client.llen(keys.deque("busy.0")) == 2
    last = client.lrange(keys.deque("busy.0"), -1, -1)[0].decode()

    recruiter = recruiter_of(spare, deadline=None)
    recruiter.enlist()
    assert keys_left(queue)["running"], "the inbox comes first"
    assert recruiter.enlist() is Duty.RECRUITED, "it has learnt who has tasks"

    by_id = {handle.id: handle for handle in handles}
    assert by_id[last].state().state is State.DONE
    assert client.llen(keys.deque("busy.0")) == 1
    assert client.zscore(keys.loads, "busy.0") == 1


def test_what_a_worker_has_put_aside_is_run_by_a_site_that_knows_it(
    make_queue: Make, redis_client: Any
) -> None:
    queue, of_worker = make_queue(redis_client), make_queue(redis_client)

    @queue.task(name="new", brief=True)
    def new(number: int) -> int:
        return number

    handles = [new.submit(number) for number in range(3)]
    Worker(of_worker).run(until_empty=True)
    assert {each.state().state for each in handles} == {State.PARKED}

    spare = BriefTasks(queue)
    recruiter_of(spare).enlist()
    spare.close()
    assert [each.result(timeout=5) for each in handles] == [0, 1, 2]
    assert queue.counts().parked == 0


def test_a_failure_is_a_failure(queue: TaskQueue, spare: BriefTasks) -> None:
    @queue.task(name="bad", brief=True)
    def bad() -> None:
        raise ValueError("not today")

    @queue.task(name="again", brief=True, retries=1)
    def again(context: ExecutionContext) -> int:
        if context.attempt == 1:
            raise ValueError("not yet")
        return context.attempt

    failed, retried = bad.submit(), again.submit()
    recruiter = recruiter_of(spare)
    deadline = time.monotonic() + 20
    while retried.state().state not in ENDED and time.monotonic() < deadline:
        recruiter.enlist()

    with pytest.raises(TaskFailed, match="not today"):
        failed.result(timeout=5)
    assert retried.result(timeout=5) == 2


def test_a_site_runs_only_what_its_policy_permits(
    make_queue: Make, redis_client: Any
) -> None:
    policy = AccessPolicy({"editor": {"publish"}})
    guarded = make_queue(redis_client, policy=policy)
    unguarded = make_queue(redis_client)
    begun: list[str] = []

    @guarded.task(name="publish", brief=True, permission="publish")
    def publish(text: str) -> None:
        begun.append(text)

    @unguarded.task(name="publish", brief=True)
    def smuggle(text: str) -> None: ...

    permitted = publish.options(context=ClientContext("ann", {"editor"})).submit("a")
    refused = smuggle.submit("b")
    spare = BriefTasks(guarded)
    drain(recruiter_of(spare), guarded)
    spare.close()

    assert begun == ["a"]
    assert permitted.result(timeout=5) is None
    with pytest.raises(NotPermitted, match="publish"):
        refused.result(timeout=5)


def test_what_took_too_long_is_not_begun_again_soon(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="slow", brief=True)
    def slow() -> str:
        time.sleep(0.8)
        return "ran"

    first, second = slow.submit(), slow.submit()
    recruiter = recruiter_of(spare, deadline=0.4)
    assert recruiter.enlist() is Duty.RECRUITED
    assert recruiter.enlist() is Duty.DISMISSED

    assert first.result(timeout=5) == "ran"
    assert second.state().state is State.WAITING
    Worker(queue).run(until_empty=True)
    assert second.result(timeout=5) == "ran"


def test_a_task_is_not_begun_that_would_not_end_in_time(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="middling", brief=True)
    def middling() -> None:
        time.sleep(0.02)

    for _ in range(3):
        middling.submit()
    assert recruiter_of(spare, deadline=0.5).enlist() is Duty.RECRUITED
    for _ in range(3):
        middling.submit()
    assert recruiter_of(spare, deadline=0.01).enlist() is Duty.DISMISSED


def test_a_coroutine_is_handed_back_when_the_moment_is_over(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    begun = []

    @queue.task(name="patient", brief=True)
    async def patient(context: ExecutionContext) -> int:
        begun.append(context.attempt)
        await asyncio.sleep(0.5 if len(begun) == 1 else 0)
        return context.attempt

    handle = patient.submit()
    recruiter_of(spare, deadline=0.1).enlist()
    assert handle.state().state is State.WAITING
    assert keys_left(queue)["lock"] == 0
    others = BriefTasks(queue)
    assert recruiter_of(others).enlist() is Duty.DISMISSED, "workers have to run it"
    others.close()

    Worker(queue).run(until_empty=True)
    assert handle.result(timeout=5) == 1, "no attempt was counted"


def test_a_process_that_dies_is_a_dead_worker(make_queue: Make) -> None:
    queue = make_queue(lease=0.5)

    @queue.task(name="brief", brief=True)
    def brief() -> str:
        return "ran"

    handle = brief.submit()
    internals = internals_of(queue)
    taken = internals.driver.call(
        brief_exchange(internals.keys, internals.settings, "gone.0", ["brief@1"])
    )
    assert len(taken.tasks) == 1

    Worker(queue).run(until_empty="all")
    assert handle.result(timeout=20) == "ran"
    trace = queue.counts().stats
    assert trace["reassigned"] == 1


def test_a_lost_reply_leaves_nothing_behind(queue: TaskQueue) -> None:
    @queue.task(name="brief", brief=True)
    def brief() -> None: ...

    brief.submit()
    internals = internals_of(queue)
    call = brief_exchange(internals.keys, internals.settings, "me.0", ["brief@1"])
    (first,) = internals.driver.call(call).tasks
    (again,) = internals.driver.call(call).tasks

    assert (again.id, again.attempt) == (first.id, 1)
    assert int(again.token) > int(first.token)


def test_a_stop_request_reaches_the_host_and_the_task_goes_back(
    queue: TaskQueue,
) -> None:
    @queue.task(name="interrupted", brief=True)
    def interrupted(context: ExecutionContext) -> int:
        if not context.worker.startswith("brief-"):
            return context.attempt
        raise KeyboardInterrupt

    handle = interrupted.submit()
    spare = BriefTasks(queue)
    with pytest.raises(KeyboardInterrupt):
        recruiter_of(spare).enlist()
    spare.close()

    assert keys_left(queue)["lock"] == 0
    Worker(queue).run(until_empty=True)
    assert handle.result(timeout=5) == 1


def test_delayed_tasks_are_run_when_they_are_due(
    queue: TaskQueue, spare: BriefTasks
) -> None:
    @queue.task(name="brief", brief=True)
    def brief() -> str:
        return "ran"

    handle = brief.options(delay=0.05).submit()
    recruiter, deadline = recruiter_of(spare), time.monotonic() + 20
    while handle.state().state not in ENDED and time.monotonic() < deadline:
        recruiter.enlist()
    assert handle.result(timeout=5) == "ran"


def test_upkeep_and_brief_tasks_go_together(queue: TaskQueue) -> None:
    @queue.task(name="brief", brief=True)
    def brief() -> int:
        return 1

    recruiter = Recruiter(share=None, deadline=5.0)
    recruiter.install(BriefTasks(queue), "brief", rate=0.5)
    recruiter.install(WorkStealer(queue), "upkeep", rate=0.5)
    handles = [brief.submit() for _ in range(20)]
    while queue.counts().unfinished:
        recruiter.enlist()
    assert sum(each.result(timeout=5) for each in handles) == 20


async def test_an_asyncio_host_runs_coroutines(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue

    @queue.task(name="double", brief=True)
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    @queue.task(name="plain", brief=True)
    def plain() -> str:
        return "ran"

    recruiter = AsyncRecruiter(share=None, deadline=5.0)
    spare, twin = AsyncBriefTasks(queue), queue.sync()
    recruiter.install(spare, "coroutines", rate=1.0)
    handles = [await double.submit(number) for number in range(10)]
    text = await plain.submit()
    while await recruiter.enlist() is not Duty.DISMISSED:
        pass
    assert [await each.result(timeout=5) for each in handles] == list(range(0, 20, 2))
    assert (await text.state()).state is State.WAITING

    threads = BriefTasks(twin)
    recruiter.uninstall("coroutines")
    recruiter.install(threads, "plain", rate=1.0)
    while await recruiter.enlist() is not Duty.DISMISSED:
        pass
    assert await text.result(timeout=5) == "ran"
    await spare.close()
    threads.close()
    twin.close()


async def test_an_asyncio_host_may_close_a_job_that_ran_coroutines_in_a_thread(
    queue: TaskQueue,
) -> None:
    @queue.task(name="double", brief=True)
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    handle, spare = double.submit(4), BriefTasks(queue)

    assert await asyncio.to_thread(spare.recruited) is Duty.RECRUITED
    assert await asyncio.to_thread(handle.result, 5) == 8
    spare.close()


async def test_a_cancelled_asyncio_host_hands_back_its_task(
    async_queue: AsyncTaskQueue,
) -> None:
    queue = async_queue
    begun = asyncio.Event()

    @queue.task(name="patient", brief=True)
    async def patient() -> None:
        begun.set()
        await asyncio.sleep(30)

    handle = await patient.submit()
    spare = AsyncBriefTasks(queue)
    host = asyncio.create_task(spare.recruited())
    await begun.wait()
    host.cancel()
    with pytest.raises(asyncio.CancelledError):
        await host
    await spare.close()
    assert (await handle.state()).state is State.WAITING


def test_a_brief_task_must_be_one_that_can_be_handed_back(queue: TaskQueue) -> None:
    def plain() -> None: ...

    with pytest.raises(ConfigurationError, match="handed back"):
        queue.task(name="once", brief=True, restart="never")(plain)
    with pytest.raises(ConfigurationError, match="True or False"):
        queue.task(name="odd", brief="yes")(plain)  # type: ignore[call-overload]


@pytest.mark.parametrize("job", [BriefTasks, WorkStealer, AsyncBriefTasks])
def test_something_else_than_a_queue_is_refused(job: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a TaskQueue .* not 'mail'"):
        job("mail")
