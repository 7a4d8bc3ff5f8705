"""Waiting for what comes of a task: by push, by looking, and all that can go wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Literal

import pytest
from redis import Redis

from workstealing import (
    ExecutionContext,
    Middleware,
    TaskCall,
    TaskQueue,
    Worker,
    WorkerPool,
)
from workstealing._logs import flush_logs
from workstealing.client import queue_outcomes
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    InvalidName,
    ResultInvalid,
    ResultTimeout,
    TaskCancelled,
    TaskDead,
    TaskFailed,
    TaskNotFound,
)
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty=True)


@dataclass
class Sum:
    total: int


def test_a_handle_of_a_task_reads_the_result_as_that_of_a_submission_does(
    queue: TaskQueue,
) -> None:
    @queue.task(name="add")
    def add(a: int, b: int) -> Sum:
        return Sum(a + b)

    submitted = add.submit(1, 2)
    drain(queue)

    assert add.handle(submitted.id).result(timeout=5) == Sum(3)
    assert add.options(delay=5).handle(submitted.id).result(timeout=5) == Sum(3)
    assert queue.handle(submitted.id).result(timeout=5) == {"total": 3}
    with pytest.raises(TaskNotFound):
        add.handle("nobody").result(timeout=5)
    with pytest.raises(InvalidName):
        add.handle("a b")


class Caller(Thread):
    """Waits for a result in a thread of its own."""

    def __init__(self, handle: Any, timeout: float = 20) -> None:
        super().__init__()
        self._task = handle
        self._timeout = timeout
        self._answer: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._answer = self._task.result(timeout=self._timeout)
        except BaseException as error:
            self._error = error

    def answer(self) -> Any:
        self.join(timeout=25)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error
        return self._answer


def is_awaited(queue: TaskQueue, task_id: str) -> bool:
    client: Any = internals_of(queue).driver.client
    return bool(client.hexists(internals_of(queue).keys.awaited, task_id))


def test_an_outcome_is_pushed_to_whoever_waits(
    queue: TaskQueue, crew: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever only looked would come too late.
    monkeypatch.setattr(queue_outcomes, "_LOOK_SECONDS", 3600.0)
    release = Event()

    @queue.task
    def wait() -> str:
        release.wait(20)
        return "done"

    handle = wait.submit()
    crew.start(queue)
    callers = [Caller(handle) for _ in range(3)]
    wait_until(lambda: _listeners(queue, handle.id) == 3, 10, "three to wait")
    release.set()

    assert [caller.answer() for caller in callers] == ["done"] * 3
    assert not is_awaited(queue, handle.id)


def test_more_callers_than_are_told_find_the_outcome_by_looking(
    queue: TaskQueue, crew: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_outcomes, "_LOOK_SECONDS", 0.1)
    release = Event()

    @queue.task
    def wait() -> str:
        release.wait(20)
        return "done"

    handle = wait.submit()
    crew.start(queue)
    callers = [Caller(handle) for _ in range(8)]
    wait_until(lambda: is_awaited(queue, handle.id), 10, "some to wait")
    release.set()

    assert [caller.answer() for caller in callers] == ["done"] * 8


def test_a_caller_whose_subscription_is_cut_finds_the_outcome(
    queue: TaskQueue, crew: Any, redis_client: Redis
) -> None:
    release = Event()

    @queue.task
    def wait() -> str:
        release.wait(20)
        return "done"

    handle = wait.submit()
    crew.start(queue)
    caller = Caller(handle)
    wait_until(lambda: is_awaited(queue, handle.id), 10, "one to wait")
    redis_client.client_kill_filter(_type="pubsub")
    release.set()

    assert caller.answer() == "done"


def test_an_outcome_that_is_there_is_told_at_once(queue: TaskQueue) -> None:
    @queue.task
    def one() -> int:
        return 1

    handle = one.submit()
    drain(queue)

    assert handle.result(timeout=0) == 1
    assert queue.handle(handle.id).result(timeout=0) == 1


def test_one_subscription_serves_all_the_waits_of_a_thread(
    queue: TaskQueue, crew: Any
) -> None:
    @queue.task
    def double(number: int) -> int:
        return 2 * number

    crew.start(queue)
    assert [double.submit(n).result(timeout=10) for n in range(20)] == [
        2 * n for n in range(20)
    ]

    client: Any = internals_of(queue).driver.client
    channels = client.pubsub_channels(internals_of(queue).keys.channel("*"))
    assert len(channels) == 1


def test_a_task_that_raises_tells_its_error_and_where_it_happened(
    queue: TaskQueue,
) -> None:
    @queue.task
    def divide(number: int) -> float:
        return 1 / number

    handle = divide.submit(0)
    drain(queue)

    with pytest.raises(TaskFailed, match="ZeroDivisionError") as failure:
        handle.result(timeout=5)
    assert "return 1 / number" in failure.value.traceback
    assert handle.state().state is State.FAILED
    assert "ZeroDivisionError" in handle.state().reason


class Tracing(Middleware):
    """Notes where the traceback of an error begins that it is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def failed(
        self, task: TaskCall, context: ExecutionContext, error: BaseException
    ) -> None:
        assert error.__traceback__ is not None
        self.seen.append(error.__traceback__.tb_frame.f_code.co_name)


@pytest.mark.parametrize("is_hooked", [False, True], ids=["plain", "hooked"])
@pytest.mark.parametrize("kind", ["inline", "threads", "asyncio"])
def test_a_traceback_begins_in_the_code_of_the_task(
    make_queue: Callable[..., TaskQueue],
    caplog: pytest.LogCaptureFixture,
    kind: Literal["inline", "threads", "asyncio"],
    is_hooked: bool,
) -> None:
    middleware = [Tracing()] if is_hooked else []
    queue = make_queue(middleware=middleware)

    @queue.task
    def divide(number: int) -> float:
        return 1 / number

    @queue.task
    async def divide_later(number: int) -> float:
        return 1 / number

    handles = [divide.submit(0), divide_later.submit(0)]
    if kind == "inline":
        drain(queue)
    else:
        pool = WorkerPool(queue, workers=1, kind=kind)
        pool.start(until_empty=True)
        assert pool.wait(20)

    for handle, name in zip(handles, ("divide", "divide_later"), strict=True):
        with pytest.raises(TaskFailed) as failure:
            handle.result(timeout=5)
        first = failure.value.traceback.splitlines()[1]
        assert first.startswith(f'  File "{__file__}"')
        assert first.endswith(f"in {name}")
    for one in middleware:
        assert sorted(one.seen) == ["divide", "divide_later"]
    assert flush_logs()
    assert caplog.text.count(f'most recent call last):\n  File "{__file__}"') == 2


def test_an_error_that_the_task_did_not_raise_keeps_its_whole_traceback(
    queue: TaskQueue,
) -> None:
    @queue.task
    def answer() -> Any:
        return object()

    handle = answer.submit()
    drain(queue)

    with pytest.raises(TaskFailed, match="has no form in JSON") as failure:
        handle.result(timeout=5)
    assert "in encode_result" in failure.value.traceback


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit])
def test_a_task_that_raises_no_ordinary_error_fails_and_its_worker_goes_on(
    queue: TaskQueue, kind: type[BaseException]
) -> None:
    @queue.task
    def leave() -> None:
        raise kind("enough")

    @queue.task
    def one() -> int:
        return 1

    handles = [leave.submit(), one.submit()]
    drain(queue)

    with pytest.raises(TaskFailed, match=kind.__name__):
        handles[0].result(timeout=5)
    assert handles[1].result(timeout=5) == 1


def test_a_result_that_is_no_json_is_a_failure_that_says_so(queue: TaskQueue) -> None:
    @queue.task
    def thing() -> Any:
        return object()

    handle = thing.submit()
    drain(queue)

    with pytest.raises(TaskFailed, match="ResultInvalid"):
        handle.result(timeout=5)


def test_a_result_of_another_type_than_announced_is_refused(queue: TaskQueue) -> None:
    @queue.task
    def number() -> int:
        return "seven"  # type: ignore[return-value]

    handle = number.submit()
    drain(queue)

    with pytest.raises(ResultInvalid):
        handle.result(timeout=5)
    assert queue.handle(handle.id).result(timeout=5) == "seven"


def test_a_task_that_nobody_knows_is_not_waited_for(queue: TaskQueue) -> None:
    with pytest.raises(TaskNotFound):
        queue.handle("nobody").result()
    assert queue.handle("nobody").state().state is State.UNKNOWN
    assert queue.handle("nobody").cancel() == "unknown"


def test_a_wait_that_is_too_long_says_where_the_task_is(queue: TaskQueue) -> None:
    @queue.task
    def one() -> int:
        return 1

    handle = one.submit()

    with pytest.raises(ResultTimeout, match="it is waiting"):
        handle.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        handle.result(timeout=0)
    drain(queue)
    assert handle.result(timeout=5) == 1


def test_waiting_for_a_queue_ends_when_nothing_is_left(
    queue: TaskQueue, crew: Any
) -> None:
    @queue.task
    def one() -> int:
        return 1

    one.submit()
    with pytest.raises(ResultTimeout, match=r"1 task of queue .* still waits or runs"):
        queue.wait(timeout=0)
    one.submit_many([()] * 299)
    with pytest.raises(ResultTimeout, match=r"300 tasks .* still wait or run"):
        queue.wait(timeout=0)
    crew.start(queue)

    assert queue.wait(timeout=20).outcomes == 300


def test_a_cancelled_task_is_an_answer_to_whoever_waits(queue: TaskQueue) -> None:
    @queue.task
    def one() -> int:
        return 1

    handle = one.submit()
    caller = Caller(handle)
    wait_until(lambda: is_awaited(queue, handle.id), 10, "one to wait")
    handle.cancel()

    with pytest.raises(TaskCancelled, match="by its caller"):
        caller.answer()


def test_a_queue_without_retention_keeps_no_outcome_but_tells_it(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    queue = make_queue(retention=0)
    release = Event()

    @queue.task
    def wait() -> str:
        release.wait(20)
        return "done"

    handle = wait.submit()
    caller = Caller(handle)
    wait_until(lambda: is_awaited(queue, handle.id), 10, "one to wait")
    crew.start(queue)
    release.set()

    assert caller.answer() == "done"
    wait_until(lambda: queue.counts().tasks == 0, 10, "the task to end")
    assert queue.counts().outcomes == 0
    with pytest.raises(TaskNotFound, match="expired"):
        handle.result(timeout=5)


def test_waiting_for_a_dead_letter_ends_although_outcomes_are_not_kept(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(retention=0)

    @queue.task
    def fail() -> None:
        raise ValueError

    handle = fail.submit()
    drain(queue)

    assert handle.state().state in (State.FAILED, State.DEAD)
    with pytest.raises((TaskFailed, TaskDead)):
        handle.result(timeout=5)


def test_waiting_for_a_dead_letter_ends_although_its_outcome_is_gone(
    queue: TaskQueue,
) -> None:
    @queue.task
    def fail() -> None:
        raise ValueError

    handle = fail.submit()
    drain(queue)
    client: Any = internals_of(queue).driver.client
    client.hdel(internals_of(queue).keys.done, handle.id)

    assert handle.state().state is State.DEAD
    with pytest.raises(TaskDead):
        handle.result(timeout=5)


def test_no_more_outcomes_are_kept_than_asked_for(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(max_outcomes=10)

    @queue.task
    def same(number: int) -> int:
        return number

    handles = same.submit_many([(n,) for n in range(300)])
    drain(queue)

    client: Any = internals_of(queue).driver.client
    assert queue.counts().outcomes <= 10
    assert client.hlen(internals_of(queue).keys.done) <= 10
    with pytest.raises(TaskNotFound):
        handles[0].result(timeout=0)


def test_outcomes_are_forgotten_after_their_time(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(retention=0.001)

    @queue.task
    def same(number: int) -> int:
        return number

    same.submit_many([(n,) for n in range(300)])
    drain(queue)
    same.submit(1)

    def is_forgotten() -> bool:
        drain(queue)
        same.submit(1)
        return queue.counts().outcomes <= 2

    wait_until(is_forgotten, 10, "outcomes to be forgotten")


def test_a_worker_tells_nothing_on_stderr_of_a_quiet_day(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task
    def same(number: int) -> int:
        return number

    with caplog.at_level(logging.WARNING, "workstealing"):
        same.submit_many([(n,) for n in range(300)])
        drain(queue)

    assert caplog.records == []


def _listeners(queue: TaskQueue, task_id: str) -> int:
    client: Any = internals_of(queue).driver.client
    return len((client.hget(internals_of(queue).keys.awaited, task_id) or b"").split())


def test_who_waits_in_vain_is_told_that_no_worker_is_alive(
    queue: TaskQueue, crew: Any
) -> None:
    @queue.task
    def idle() -> None: ...

    handle = idle.submit()
    with pytest.raises(ResultTimeout, match=r"it is waiting.*; no worker of queue"):
        handle.result(timeout=0.05)

    other = idle.options(delay=60).submit()
    crew.start(queue)
    handle.result(timeout=10)
    with pytest.raises(ResultTimeout) as caught:
        other.result(timeout=0.05)
    assert "no worker" not in str(caught.value)
