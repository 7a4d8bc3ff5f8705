"""Middlewares are told of each task, may refuse it or replace its result, no more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from workstealing import (
    AccessPolicy,
    AsyncTaskQueue,
    ExecutionContext,
    GiveUp,
    Middleware,
    NewResult,
    Retry,
    RetryPolicy,
    Snooze,
    TaskCall,
    TaskQueue,
    Worker,
    WorkerPool,
    current_context,
)
from workstealing._logs import flush_logs
from workstealing.errors import (
    ConfigurationError,
    PayloadInvalid,
    ResultInvalid,
    TaskFailed,
)
from workstealing.tasks.context import control_of
from workstealing.tasks.outcome import State

Make = Callable[..., TaskQueue]


class Diary(Middleware):
    """Writes down all that it is told."""

    def __init__(self, name: str, pages: list[Any]) -> None:
        self.name = name
        self.pages = pages

    def submitted(self, task: TaskCall) -> None:
        self.pages.append((self.name, "submitted"))

    def before(self, task: TaskCall, context: ExecutionContext) -> None:
        self.pages.append((self.name, "before"))

    def after(self, task: TaskCall, context: ExecutionContext, result: Any) -> None:
        self.pages.append((self.name, "after", result))

    def failed(
        self, task: TaskCall, context: ExecutionContext, error: BaseException
    ) -> None:
        self.pages.append((self.name, "failed", type(error)))

    def retried(
        self,
        task: TaskCall,
        context: ExecutionContext,
        error: BaseException,
        delay: float,
    ) -> None:
        self.pages.append((self.name, "retried", type(error)))

    def gave_up(
        self,
        task: TaskCall,
        context: ExecutionContext,
        error: BaseException,
        reason: str,
    ) -> None:
        self.pages.append((self.name, "gave_up", reason))


class AsyncDiary(Diary):
    """The same, with coroutines that have to wait."""

    async def submitted(self, task: TaskCall) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().submitted(task)

    async def before(  # type: ignore[override]
        self, task: TaskCall, context: ExecutionContext
    ) -> None:
        await asyncio.sleep(0)
        super().before(task, context)

    async def after(  # type: ignore[override]
        self, task: TaskCall, context: ExecutionContext, result: Any
    ) -> None:
        await asyncio.sleep(0)
        super().after(task, context, result)


def run(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty="all")


each_diary = pytest.mark.parametrize("diary", [Diary, AsyncDiary])


@each_diary
def test_middlewares_enclose_the_task_and_each_other(
    queue: TaskQueue, diary: type[Diary]
) -> None:
    pages: list[Any] = []
    queue.use(diary("outer", pages))
    queue.use(diary("inner", pages))

    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        pages.append("add")
        return a + b

    handle = add.submit(1, 2)
    run(queue)

    assert handle.result(timeout=5) == 3
    assert pages == [
        ("outer", "submitted"),
        ("inner", "submitted"),
        ("outer", "before"),
        ("inner", "before"),
        "add",
        ("inner", "after", 3),
        ("outer", "after", 3),
    ]


def test_a_failing_task_is_told_as_failed_then_retried_then_given_up(
    queue: TaskQueue,
) -> None:
    pages: list[Any] = []
    queue.use(Diary("a", pages))
    queue.use(Diary("b", pages))

    @queue.task(name="fail", retries=RetryPolicy(1, initial_delay=0.01))
    def fail() -> None:
        raise LookupError("no")

    fail.submit()
    pages.clear()
    run(queue)

    attempt = [("a", "before"), ("b", "before")]
    failed = [("b", "failed", LookupError), ("a", "failed", LookupError)]
    reason = "LookupError: no (failed in attempt 2, and the task has retries=1)"
    assert pages == [
        *attempt,
        *failed,
        ("b", "retried", LookupError),
        ("a", "retried", LookupError),
        *attempt,
        *failed,
        ("b", "gave_up", reason),
        ("a", "gave_up", reason),
    ]


def test_a_task_whose_arguments_do_not_fit_is_told_as_given_up_and_is_an_error_line(
    queue: TaskQueue, make_queue: Make, caplog: pytest.LogCaptureFixture
) -> None:
    pages: list[Any] = []
    queue.use(Diary("a", pages))

    @queue.task(
        name="charge",
        on_give_up=lambda context, reason: pages.append((context.id, reason)),
    )
    def charge(invoice: int, currency: str) -> None: ...

    handle = make_queue().task(name="charge")(lambda invoice: None).submit(invoice=7)
    run(queue)

    (told, reason), gave_up = pages
    assert told == handle.id
    assert "currency" in reason
    assert gave_up == ("a", "gave_up", reason)
    assert flush_logs()
    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    said = error.getMessage()
    assert f"task {handle.id} (charge@1) was not run: {reason}" in said
    assert "needs a new `version=`" in said
    assert "`workstealing queue replay`" in said


async def test_an_event_loop_tells_it_too(queue: TaskQueue, make_queue: Make) -> None:
    told: list[Any] = []

    class Listen(Middleware):
        async def gave_up(  # type: ignore[override]
            self,
            task: TaskCall,
            context: ExecutionContext,
            error: BaseException,
            reason: str,
        ) -> None:
            await asyncio.sleep(0)
            told.append((type(error), dict(task.arguments)))

    queue.use(Listen())
    queue.task(name="charge")(lambda invoice, currency: None)
    make_queue().task(name="charge")(lambda invoice: None).submit(invoice=7)

    pool = WorkerPool(queue, 1, "asyncio")
    await asyncio.to_thread(pool.start, until_empty="all")
    await asyncio.to_thread(pool.wait, 20)
    await asyncio.to_thread(pool.stop)

    assert told == [(PayloadInvalid, {})]


def test_who_is_not_permitted_has_no_hook_called(make_queue: Make) -> None:
    pages: list[Any] = []
    strict = make_queue(policy=AccessPolicy({}), middleware=[Diary("a", pages)])
    strict.task(name="pay", on_give_up=lambda *_: pages.append("told"))(lambda: None)
    handle = make_queue().task(name="pay")(lambda: None).submit()
    run(strict)

    assert handle.state().state is State.DEAD
    assert pages == []


def test_a_hook_sees_the_task_its_arguments_and_its_context(queue: TaskQueue) -> None:
    seen: list[Any] = []

    class Look(Middleware):
        def submitted(self, task: TaskCall) -> None:
            seen.append((task.name, task.id, dict(task.arguments)))

        def before(self, task: TaskCall, context: ExecutionContext) -> None:
            seen.append((task.name, task.id, dict(task.arguments)))
            assert current_context() is context
            assert (context.attempt, context.queue) == (1, queue.name)
            task.arguments["a"] = 9  # type: ignore[index]

    queue.use(Look())

    @queue.task(name="add")
    def add(a: int, ctx: ExecutionContext, b: int = 2) -> int:
        return a + b

    handle = add.submit(1)  # type: ignore[call-arg]
    run(queue)

    one = ("add", handle.id, {"a": 1, "b": 2})
    assert seen == [one, one]
    with pytest.raises(TaskFailed, match="does not support item assignment"):
        handle.result(timeout=5)


def test_only_tasks_that_are_new_are_told_as_submitted(queue: TaskQueue) -> None:
    seen: list[str] = []

    class Look(Middleware):
        def submitted(self, task: TaskCall) -> None:
            seen.append(task.id)

    queue.use(Look())

    @queue.task(name="noop")
    def noop() -> None: ...

    noop.submit_many([()] * 3, ids=["a", "b", "c"])
    noop.submit_many([()] * 3, ids=["b", "d", "c"])
    many = noop.submit_many([()] * 2500)

    assert seen == ["a", "b", "c", "d", *(handle.id for handle in many)]


def test_a_task_that_a_hook_gives_up_is_a_dead_letter_and_not_run(
    queue: TaskQueue,
) -> None:
    pages: list[Any] = []

    class Closed(Middleware):
        def before(self, task: TaskCall, context: ExecutionContext) -> None:
            raise GiveUp("the shop is closed")

    queue.use(Diary("outer", pages))
    queue.use(Closed())
    queue.use(Diary("inner", pages))

    @queue.task(name="sell", retries=5)
    def sell() -> None:
        pages.append("sold")

    handle = sell.submit()
    pages.clear()
    run(queue)

    with pytest.raises(TaskFailed, match="the shop is closed"):
        handle.result(timeout=5)
    assert queue.counts().dead == 1
    # Those whose `before` did not return are not told how the attempt ended.
    assert pages == [
        ("outer", "before"),
        ("outer", "failed", GiveUp),
        ("inner", "gave_up", "the shop is closed (GiveUp was raised)"),
        ("outer", "gave_up", "the shop is closed (GiveUp was raised)"),
    ]


def test_a_hook_can_have_a_task_tried_again_later(queue: TaskQueue) -> None:
    class Busy(Middleware):
        def before(self, task: TaskCall, context: ExecutionContext) -> None:
            if context.attempt == 1:
                raise Retry(after=0.01)

    queue.use(Busy())

    @queue.task(name="attempt", retries=1)
    def attempt(ctx: ExecutionContext) -> int:
        return ctx.attempt

    handle = attempt.submit()  # type: ignore[call-arg]
    run(queue)

    assert handle.result(timeout=5) == 2


def test_a_hook_can_have_a_task_run_later_without_counting_it(
    queue: TaskQueue,
) -> None:
    pages: list[Any] = []

    class Early(Middleware):
        def before(self, task: TaskCall, context: ExecutionContext) -> None:
            if len(pages) < 3:
                raise Snooze(0.01)

    queue.use(Diary("outer", pages))
    queue.use(Early())

    @queue.task(name="attempt")
    def attempt(ctx: ExecutionContext) -> int:
        return ctx.attempt

    handle = attempt.submit()  # type: ignore[call-arg]
    pages.clear()
    run(queue)

    assert handle.result(timeout=5) == 1
    assert [page[1] for page in pages] == ["before", "failed", "before", "after"]


def test_a_worker_that_has_lost_the_task_leaves_it_to_the_next_to_tell(
    queue: TaskQueue,
) -> None:
    pages: list[Any] = []
    queue.use(Diary("a", pages))

    @queue.task(name="late", on_give_up=lambda context, reason: pages.append(reason))
    def late(ctx: ExecutionContext) -> None:
        control_of(ctx).is_lease_lost = True
        raise LookupError

    late.submit()  # type: ignore[call-arg]
    pages.clear()
    run(queue)

    assert pages == [("a", "before"), ("a", "failed", LookupError)]


def test_an_error_before_a_task_counts_as_its_own(queue: TaskQueue) -> None:
    class Broken(Middleware):
        def before(self, task: TaskCall, context: ExecutionContext) -> None:
            raise KeyError("gone")

    queue.use(Broken())

    @queue.task(name="noop")
    def noop() -> None: ...

    handle = noop.submit()
    run(queue)

    with pytest.raises(TaskFailed, match="KeyError"):
        handle.result(timeout=5)


def test_a_result_can_be_replaced_by_each_in_turn(queue: TaskQueue) -> None:
    class Double(Middleware):
        def after(
            self, task: TaskCall, context: ExecutionContext, result: Any
        ) -> NewResult:
            return NewResult(result * 2)

    class Increase(Middleware):
        async def after(
            self, task: TaskCall, context: ExecutionContext, result: Any
        ) -> NewResult:
            return NewResult(result + 1)

    queue.use(Double())
    queue.use(Increase())

    @queue.task(name="three")
    async def three() -> int:
        return 3

    handle = three.submit()
    run(queue)

    assert handle.result(timeout=5) == 8


def test_a_result_that_cannot_be_stored_is_told_with_its_error(
    queue: TaskQueue,
) -> None:
    errors: list[BaseException] = []

    class Look(Middleware):
        def gave_up(
            self,
            task: TaskCall,
            context: ExecutionContext,
            error: BaseException,
            reason: str,
        ) -> None:
            errors.append(error)

    queue.use(Look())

    @queue.task(name="odd")
    def odd() -> Any:
        return object()

    odd.submit()
    run(queue)

    assert [type(error) for error in errors] == [ResultInvalid]


class Rude(Middleware):
    """Raises wherever it changes nothing."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def submitted(self, task: TaskCall) -> None:
        raise RuntimeError("submitted")

    def after(self, task: TaskCall, context: ExecutionContext, result: Any) -> None:
        raise self.error

    def failed(
        self, task: TaskCall, context: ExecutionContext, error: BaseException
    ) -> None:
        raise self.error

    def gave_up(
        self,
        task: TaskCall,
        context: ExecutionContext,
        error: BaseException,
        reason: str,
    ) -> None:
        raise self.error


class AsyncRude(Rude):
    async def submitted(self, task: TaskCall) -> None:  # type: ignore[override]
        super().submitted(task)

    async def after(  # type: ignore[override]
        self, task: TaskCall, context: ExecutionContext, result: Any
    ) -> None:
        raise self.error


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("rude", [Rude, AsyncRude])
@pytest.mark.parametrize(
    "error", [ValueError("rude"), SystemExit(3), asyncio.CancelledError()], ids=repr
)
def test_what_a_hook_raises_changes_nothing_and_is_logged_once(
    queue: TaskQueue,
    kind: Any,
    rude: type[Rude],
    error: BaseException,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue.use(rude(error))

    @queue.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    @queue.task(name="fail")
    def fail() -> None:
        raise LookupError("no")

    with caplog.at_level(logging.ERROR, "workstealing"), WorkerPool(queue, 2, kind):
        handles = [add.submit(1, 2) for _ in range(5)]
        failing = [fail.submit() for _ in range(2)]
        results = [handle.result(timeout=10) for handle in handles]
        for handle in failing:
            with pytest.raises(TaskFailed, match="LookupError"):
                handle.result(timeout=10)
    flush_logs()

    assert results == [3] * 5
    told = [r.getMessage() for r in caplog.records if "middleware" in r.getMessage()]
    for hook in ("submitted", "after", "failed", "gave_up"):
        assert sum(f"{rude.__name__} raised in {hook}()" in line for line in told) == 1


def test_a_task_may_raise_stop_iteration_inside_of_hooks(queue: TaskQueue) -> None:
    queue.use(Diary("a", []))

    @queue.task(name="stop")
    def stop() -> None:
        raise StopIteration

    handle = stop.submit()
    run(queue)

    with pytest.raises(TaskFailed, match="StopIteration"):
        handle.result(timeout=5)


async def test_hooks_are_awaited_where_tasks_are(async_queue: AsyncTaskQueue) -> None:
    pages: list[Any] = []
    async_queue.use(AsyncDiary("a", pages))

    @async_queue.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    async with WorkerPool(async_queue, 2, "asyncio"):
        handle = await add.submit(1, 2)
        assert await handle.result(timeout=5) == 3

    assert [page[1] for page in pages] == ["submitted", "before", "after"]


async def test_a_pool_that_ends_while_a_hook_waits_hands_the_task_back(
    async_queue: AsyncTaskQueue,
) -> None:
    waits = asyncio.Event()

    class Slow(Middleware):
        async def before(self, task: TaskCall, context: ExecutionContext) -> None:
            waits.set()
            await asyncio.sleep(100)

    async_queue.use(Slow())

    @async_queue.task(name="noop")
    async def noop() -> None: ...

    pool = WorkerPool(async_queue, 1, "asyncio")
    pool.start()
    try:
        handle = await noop.submit()
        # The event belongs to another loop: look instead of waiting.
        for _ in range(500):
            if waits.is_set():
                break
            await asyncio.sleep(0.01)
    finally:
        await asyncio.to_thread(pool.stop, hot=True)

    assert (await handle.state()).state is State.WAITING


TENANT: ContextVar[str | None] = ContextVar("tenant", default=None)
LOCALE: ContextVar[str] = ContextVar("locale", default="en")


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_named_context_variables_travel_with_the_task(
    make_queue: Make, kind: Any
) -> None:
    queue = make_queue(carry=[TENANT, LOCALE])

    @queue.task(name="who")
    def who() -> list[str | None]:
        return [TENANT.get(), LOCALE.get()]

    @queue.task(name="who_later")
    async def who_later() -> list[str | None]:
        await asyncio.sleep(0)
        return [TENANT.get(), LOCALE.get()]

    token = TENANT.set("acme")
    try:
        handles = [who.submit(), who_later.submit()]
    finally:
        TENANT.reset(token)
    plain = [who.submit(), who_later.submit()]
    with WorkerPool(queue, 1, kind):
        assert [one.result(timeout=5) for one in handles] == [["acme", "en"]] * 2
        assert [one.result(timeout=5) for one in plain] == [[None, "en"]] * 2


def test_a_variable_that_is_no_string_is_refused_where_it_is_submitted(
    make_queue: Make,
) -> None:
    odd: ContextVar[Any] = ContextVar("odd", default=None)
    queue = make_queue(carry=[odd])

    @queue.task(name="noop")
    def noop() -> None: ...

    odd.set(7)
    with pytest.raises(ConfigurationError, match="'odd' travels with tasks"):
        noop.submit()
    odd.set(None)
    noop.submit()


def test_what_is_no_middleware_and_no_variable_is_refused(make_queue: Make) -> None:
    with pytest.raises(ConfigurationError, match="subclass of Middleware"):
        make_queue().use(print)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="ContextVars"):
        make_queue(carry=["tenant"])
    with pytest.raises(ConfigurationError, match="two variables"):
        make_queue(carry=[TENANT, ContextVar("tenant")])


async def test_the_sync_twin_of_a_queue_has_the_same_middleware(
    async_queue: AsyncTaskQueue,
) -> None:
    pages: list[Any] = []
    twin = async_queue.sync()
    async_queue.use(Diary("a", pages))

    @async_queue.task(name="noop")
    def noop() -> None: ...

    await noop.submit()
    await asyncio.to_thread(run, twin)
    twin.close()

    assert [page[1] for page in pages] == ["submitted", "before", "after"]
