"""Chains and groups on a server: what runs, with what, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from redis import Redis

from workstealing import (
    AsyncTaskQueue,
    Inspector,
    Limit,
    MemberResult,
    Middleware,
    State,
    TaskCall,
    TaskQueue,
    Unique,
    Worker,
    WorkerPool,
    chain,
    group,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    ConfigurationError,
    PayloadInvalid,
    QueueFull,
    ResultTimeout,
    TaskCancelled,
    TaskDead,
    TaskFailed,
    TaskNotFound,
)
from workstealing.testing import Server, wait_until

Make = Callable[..., TaskQueue]


class Tasks:
    """Tasks of one queue that count how often each was run."""

    def __init__(self, queue: TaskQueue) -> None:
        self.queue = queue
        self.ran: list[str] = []

        @queue.task(name="add")
        def add(x: int, y: int) -> int:
            self.ran.append("add")
            return x + y

        @queue.task(name="double")
        def double(x: int) -> int:
            self.ran.append("double")
            return 2 * x

        @queue.task(name="fail", retries=0)
        def fail(x: int) -> int:
            raise ValueError(f"{x} is bad")

        @queue.task(name="total")
        def total(results: list[MemberResult[int]], extra: int = 0) -> int:
            self.ran.append("total")
            return sum(one.result() for one in results if one.is_done) + extra

        @queue.task(name="states")
        def states(results: list[MemberResult[int]]) -> list[str]:
            return [one.state for one in results]

        @queue.task(name="tidy")
        def tidy() -> str:
            return "tidy"

        self.add, self.double, self.fail = add, double, fail
        self.total, self.states, self.tidy = total, states, tidy

    def work(self) -> None:
        Worker(self.queue).run(until_empty=True)


@pytest.fixture
def tasks(make_queue: Make) -> Tasks:
    return Tasks(make_queue())


def test_each_step_of_a_chain_takes_the_result_of_the_one_before(tasks: Tasks) -> None:
    handle = chain(tasks.add.s(1, 2), tasks.double.s(), tasks.add.s(y=10)).submit()
    states = [step.state() for step in handle.steps]
    assert [state.state for state in states] == [State.WAITING] * 3
    assert states[1].reason == f"waits for task {handle.steps[0].id}"

    tasks.work()

    assert handle.result(timeout=5) == 16
    assert [step.result(timeout=5) for step in handle.steps] == [3, 6, 16]
    assert tasks.ran == ["add", "double", "add"]


def test_a_step_that_has_all_of_its_arguments_takes_no_result(tasks: Tasks) -> None:
    handle = (tasks.add.s(1, 2) | tasks.tidy.s()).submit()
    tasks.work()

    assert handle.result(timeout=5) == "tidy"


def test_what_follows_a_failed_step_is_cancelled_and_says_why(tasks: Tasks) -> None:
    handle = (tasks.fail.s(7) | tasks.double.s() | tasks.double.s()).submit()
    tasks.work()

    with pytest.raises(TaskCancelled, match="ValueError: 7 is bad") as raised:
        handle.result(timeout=5)
    assert handle.steps[0].id in str(raised.value)
    assert handle.steps[1].state().state is State.CANCELLED
    with pytest.raises(TaskFailed):
        handle.steps[0].result(timeout=5)
    assert tasks.ran == []


def test_cancelling_a_chain_cancels_all_that_has_not_ended(tasks: Tasks) -> None:
    handle = (tasks.add.s(1, 2) | tasks.double.s() | tasks.double.s()).submit()

    assert handle.cancel() == "cancelled"
    tasks.work()

    states = {step.state().state for step in handle.steps}
    assert (states, tasks.ran) == ({State.CANCELLED}, [])
    assert handle.cancel() == "ended"


def test_a_cancelled_step_takes_those_after_it_along(tasks: Tasks) -> None:
    handle = (tasks.add.s(1, 2) | tasks.double.s() | tasks.tidy.s()).submit()
    handle.steps[1].cancel()
    tasks.work()

    with pytest.raises(TaskCancelled, match="by its caller"):
        handle.result(timeout=5)
    assert tasks.ran == ["add"]


def test_a_step_is_put_into_the_queue_with_its_own_priority_line_and_delay(
    make_queue: Make, crew: Any
) -> None:
    queue = make_queue()
    limit = Limit(concurrency=1, name="one")

    @queue.task(name="one")
    def one(x: int) -> int:
        return x

    @queue.task(name="limited", limit=limit)
    def limited(x: int) -> int:
        return x + 1

    late = (one.s(1) | one.options(delay=3600, priority=0).s()).submit()
    held = (one.s(1) | limited.s()).submit()
    crew.start(queue)

    assert held.result(timeout=10) == 2
    wait_until(lambda: late.state().state is State.DELAYED, 10, "its delay to begin")
    assert not queue.limits()[0].keys


def test_another_process_finds_a_group_by_its_id(
    tasks: Tasks, make_queue: Make
) -> None:
    handle = group(tasks.add.s(n, 1) for n in range(3)).submit()
    found = make_queue().group_handle(handle.id)
    assert found.progress() == handle.progress()
    tasks.work()

    assert [one.value for one in found.results(timeout=5)] == [1, 2, 3]
    with pytest.raises(TaskNotFound, match="no group nobody"):
        tasks.queue.group_handle("nobody")


def test_a_group_ends_although_members_fail(tasks: Tasks) -> None:
    members = [tasks.add.s(1, 2), tasks.fail.s(3), tasks.add.s(3, 4)]
    handle = (group(members) | tasks.total.s(extra=100)).submit()
    progress = handle.group.progress()
    assert (progress.total, progress.left, progress.done) == (3, 3, 0)
    assert handle.state().reason == "waits for 3 of 3 members of its group"

    tasks.work()

    assert handle.result(timeout=5) == 110
    progress = handle.group.progress()
    assert (progress.left, progress.done, progress.failed) == (0, 2, 1)
    first, second, third = handle.group.results(timeout=5)
    assert (first.value, third.result()) == (3, 7)
    with pytest.raises(TaskFailed, match="3 is bad"):
        second.result()


def test_a_group_of_tasks_of_several_names_needs_no_step_after_it(
    tasks: Tasks,
) -> None:
    handle = group(tasks.add.s(1, 2), tasks.double.s(4), tasks.tidy.s()).submit()
    with pytest.raises(ResultTimeout, match="3 of 3 members"):
        handle.results(timeout=0)
    tasks.work()

    assert [one.result() for one in handle.results(timeout=5)] == [3, 8, "tidy"]
    assert [one.result(timeout=5) for one in handle.members] == [3, 8, "tidy"]


def test_steps_after_a_group_go_on_as_a_chain(tasks: Tasks) -> None:
    members = group(tasks.add.s(n, 0) for n in range(4))
    handle = (members | tasks.total.s() | tasks.double.s()).submit()
    tasks.work()

    assert handle.result(timeout=5) == 12


def test_a_group_without_members_goes_on_at_once(tasks: Tasks) -> None:
    none: list[Any] = []
    handle = (group(none) | tasks.total.s(extra=1)).submit()
    tasks.work()

    assert handle.result(timeout=5) == 1
    assert handle.group.progress().total == 0
    assert handle.group.results() == []
    with pytest.raises(ConfigurationError, match="nothing to submit"):
        group(none).submit()


def test_cancelling_a_group_leaves_the_step_after_it(tasks: Tasks) -> None:
    handle = (group(tasks.add.s(n, 0) for n in range(3)) | tasks.states.s()).submit()

    assert handle.group.cancel() == 3
    tasks.work()

    assert handle.result(timeout=5) == ["cancelled"] * 3


def test_cancelling_the_whole_runs_nothing(tasks: Tasks) -> None:
    handle = (group(tasks.add.s(n, 0) for n in range(3)) | tasks.total.s()).submit()

    assert handle.cancel() == "cancelled"
    tasks.work()

    assert tasks.ran == []
    assert handle.group.progress().failed == 3


def test_a_group_of_ten_thousand_members(tasks: Tasks) -> None:
    members = group(tasks.add.s(n, 0) for n in range(10_000))
    handle = (members | tasks.total.s()).submit()
    assert handle.group.progress().left == 10_000
    tasks.work()

    assert handle.result(timeout=10) == sum(range(10_000))
    assert tasks.ran.count("total") == 1
    results = handle.group.results(timeout=10)
    assert [one.value for one in results] == list(range(10_000))


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_pools_feed_steps_without_keeping_a_loop_waiting(
    kind: Any, make_queue: Make
) -> None:
    tasks = Tasks(make_queue())

    @tasks.queue.task(name="later")
    async def later(results: list[MemberResult[int]]) -> int:
        await asyncio.sleep(0)
        return len(results)

    handle = (group(tasks.add.s(n, n) for n in range(20)) | later.s()).submit()
    with WorkerPool(tasks.queue, workers=2, kind=kind):
        assert handle.result(timeout=20) == 20


def test_an_asyncio_queue_composes_as_well(
    redis_server: Server, key_prefix: str, make_queue: Make
) -> None:
    async def tell() -> tuple[int, int, int, int]:
        async with AsyncTaskQueue(key_prefix, redis_server.url) as queue:

            @queue.task(name="add")
            async def add(x: int, y: int) -> int:
                return x + y

            @queue.task(name="total")
            async def total(results: list[MemberResult[int]]) -> int:
                return sum(one.result() for one in results)

            first = await (add.s(1, 2) | add.s(3)).submit()
            second = await (group(add.s(n, n) for n in range(3)) | total.s()).submit()
            third = await group(add.s(1, 1)).submit()
            cancelled = await (add.s(1, 2) | add.s(3)).submit()
            assert await cancelled.cancel() == "cancelled"
            assert (await second.group.progress()).left == 3
            worker = Worker(queue.sync())
            await asyncio.to_thread(worker.run, until_empty=True)
            found = await queue.group_handle(third.id)
            (only,) = await found.results(timeout=5)
            return (
                await first.result(timeout=5),
                await second.result(timeout=5),
                only.result(),
                await third.cancel(),
            )

    assert asyncio.run(tell()) == (6, 6, 2, 0)


def test_outcomes_that_a_step_needs_outlive_their_retention(make_queue: Make) -> None:
    tasks = Tasks(make_queue(retention=0))
    handle = (group(tasks.add.s(n, 0) for n in range(30)) | tasks.total.s()).submit()
    again = (tasks.add.s(1, 1) | tasks.double.s() | tasks.states.s([])).submit()
    tasks.work()

    stats = tasks.queue.counts().stats
    assert stats["done"] == 34
    assert tasks.ran.count("total") == 1
    for one in (handle, again):
        with pytest.raises(TaskNotFound):
            one.result(timeout=1)


def test_a_purge_passes_over_what_a_step_needs(make_queue: Make) -> None:
    tasks = Tasks(make_queue())
    members = [tasks.add.s(1, 1), tasks.add.options(delay=3600).s(2, 2)]
    handle = (group(members) | tasks.total.s()).submit()
    tasks.add.submit(3, 3)
    tasks.work()

    assert tasks.queue.purge().changed == 1
    assert handle.group.members[0].result(timeout=1) == 2


def test_outcomes_that_a_step_needs_do_not_make_room_for_others(
    make_queue: Make,
) -> None:
    tasks = Tasks(make_queue(max_outcomes=5))
    handle = (group(tasks.add.s(n, 0) for n in range(30)) | tasks.total.s()).submit()
    tasks.add.submit_many([(n, 0) for n in range(50)])
    tasks.work()

    assert handle.result(timeout=5) == sum(range(30))


def test_a_replayed_member_is_waited_for_once_more(make_queue: Make, crew: Any) -> None:
    queue, is_good = make_queue(), [False]

    @queue.task(name="moody", retries=0)
    def moody(x: int) -> int:
        if not is_good[0]:
            raise ValueError("not today")
        return x

    @queue.task(name="later")
    def later(x: int) -> int:
        return x

    @queue.task(name="total", retries=0)
    def total(results: list[MemberResult[int]]) -> int:
        return sum(one.result() for one in results)

    members = group(moody.s(1), later.options(delay=3600).s(2))
    handle = (members | total.s()).submit()
    crew.start(queue)
    wait_until(lambda: handle.group.progress().failed == 1, 10, "one to fail")
    is_good[0] = True
    assert queue.replay(handle.group.members[0].id)
    wait_until(lambda: handle.group.progress().done == 1, 10, "it to be done")
    progress = handle.group.progress()
    assert (progress.left, progress.failed) == (1, 0)

    handle.group.members[1].cancel()
    with pytest.raises(TaskFailed, match="TaskCancelled"):
        handle.result(timeout=10)


def test_a_policy_signature_and_context_hold_for_every_step(make_queue: Make) -> None:
    queue = make_queue(secret="s" * 32)
    tasks = Tasks(queue)
    handle = (group(tasks.add.s(1, 1)) | tasks.total.s() | tasks.double.s()).submit()
    tasks.work()

    assert handle.result(timeout=5) == 4


def test_middlewares_are_told_of_every_step(make_queue: Make) -> None:
    class Noting(Middleware):
        def __init__(self) -> None:
            self.seen: list[tuple[str, dict[str, Any]]] = []

        def submitted(self, call: TaskCall) -> None:
            self.seen.append((call.name, dict(call.arguments)))

    noting = Noting()
    queue = make_queue()
    queue.use(noting)
    tasks = Tasks(queue)
    handle = (tasks.add.s(1, 2) | tasks.add.s(y=3)).submit()
    tasks.work()

    assert noting.seen == [("add", {"x": 1, "y": 2}), ("add", {"y": 3})]
    assert handle.result(timeout=5) == 6


def test_context_variables_of_the_caller_reach_every_step(make_queue: Make) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    queue = make_queue(carry=[tenant])

    @queue.task(name="who")
    def who(others: list[str]) -> list[str]:
        return [*others, tenant.get()]

    tenant.set("ann")
    handle = (who.s([]) | who.s()).submit()
    tenant.set("bob")
    Worker(queue).run(until_empty=True)

    assert handle.result(timeout=5) == ["ann", "ann"]


def test_a_queue_with_too_little_room_takes_all_of_it_or_nothing(
    make_queue: Make,
) -> None:
    tasks = Tasks(make_queue(max_length=3))
    with pytest.raises(QueueFull):
        (group(tasks.add.s(n, 0) for n in range(3)) | tasks.total.s()).submit()

    assert tasks.queue.counts().tasks == 0


def test_why_says_what_a_step_waits_for(tasks: Tasks) -> None:
    whole = (group(tasks.add.s(n, 0) for n in range(3)) | tasks.total.s()).submit()
    parts = (tasks.add.s(1, 2) | tasks.double.s()).submit()
    inspector = Inspector(tasks.queue)

    assert "waits for 3 of 3 members of its group" in str(inspector.why(whole.id))
    text = str(inspector.why(parts.id))
    assert f"It waits for task {parts.steps[0].id}. That one is waiting." in text
    assert inspector.stat().steps == 2


def test_mistakes_are_refused_before_anything_is_submitted(
    tasks: Tasks, redis_server: Server, key_prefix: str
) -> None:
    other = Tasks(TaskQueue(f"{key_prefix}-other", redis_server.url))
    unique = tasks.queue.task(name="unique", unique=Unique())(_own)
    anything: Any = chain
    for compose, words in (
        (lambda: (tasks.add.s(1, 2) | other.double.s()).submit(), "of one queue"),
        (lambda: anything(tasks.double.s()), "begins with a step"),
        (lambda: anything(tasks.add.s(1, 2), 3), "not 3"),
        (lambda: group(tasks.double.s()), "all of its arguments"),  # type: ignore[call-overload]
        (lambda: tasks.add.options(id="x").s(1, 2), "options\\(id=…\\)"),
        (lambda: unique.s(1), "unique="),
        (lambda: group([tasks.tidy.s()] * 100_001).submit(), "100,000 members"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            compose()
    limit = Limit(concurrency=1, per="x", name="by_x")
    limited = tasks.queue.task(name="limited", limit=limit)(_own)
    with pytest.raises(ConfigurationError, match="depend on its arguments"):
        (tasks.add.s(1, 2) | limited.s()).submit()
    with pytest.raises(PayloadInvalid, match="'y'"):
        tasks.add.s(y="two")
    with pytest.raises(PayloadInvalid):
        tasks.add.s(1, 2, 3)
    assert tasks.queue.counts().tasks == 0
    other.queue.close()


def test_a_step_whose_predecessor_was_forgotten_is_given_up(tasks: Tasks) -> None:
    handle = (tasks.add.s(1, 2) | tasks.double.s()).submit()
    parts = internals_of(tasks.queue)
    client: Redis = parts.driver.client
    # As if keys of ours had been deleted.
    client.hset(parts.keys.followers, handle.steps[0].id, f"n{handle.id}")
    client.hdel(parts.keys.steps, handle.id)
    client.hdel(parts.keys.task, handle.steps[0].id)
    client.delete(*parts.keys.inboxes)
    client.rpush(parts.keys.inboxes[1], handle.id)
    tasks.work()

    with pytest.raises(TaskDead, match="the step before it, is gone"):
        handle.result(timeout=5)


def _own(x: int) -> int:
    return x
