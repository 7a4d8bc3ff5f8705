"""One way to call tasks by name: here or through a queue, awaited or not."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from threading import Event
from typing import Any

import pytest

from workstealing import (
    AccessPolicy,
    AsyncTaskClient,
    AsyncTaskQueue,
    ClientContext,
    Contract,
    Pool,
    Registry,
    TaskClient,
    TaskQueue,
)
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_log import LoggingChannel
from workstealing.errors import (
    ConfigurationError,
    NotPermitted,
    PayloadInvalid,
    PayloadTooLarge,
    ResultInvalid,
    ResultTimeout,
    TaskCancelled,
    TaskExpired,
    TaskFailed,
    TaskNotFound,
    UnknownTask,
)
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.outcome import State
from workstealing.tasks.policy import PUBLIC
from workstealing.tasks.retry import RetryPolicy
from workstealing.testing import Server, wait_until


@dataclass
class Resize:
    path: str
    width: int = 5


@dataclass
class Nothing:
    """A payload without fields."""


@dataclass
class Text:
    text: str


RESIZE = Contract("images.resize", Resize, str, permission="images.resize")
ANN = ClientContext("ann", {"editor"})
POLICY = AccessPolicy({"editor": {"images.resize"}})


class Tasks:
    """The tasks of the stories, and what they did."""

    def __init__(self) -> None:
        self.registry = registry = Registry()
        self.begun: list[str] = []
        self.go_on = Event()

        @registry.implements(RESIZE)
        def resize(request: Resize) -> str:
            self.begun.append(request.path)
            return f"{request.path}@{request.width}"

        def public(name: str, function: Any, result: Any = None, **options: Any) -> Any:
            contract = registry.contract(name, Nothing, result, permission=PUBLIC)
            return registry.implements(contract, **options)(function)

        def who(_: Nothing, ctx: ExecutionContext) -> list[str]:
            return [ctx.principal, *ctx.roles]

        def until(_: Nothing, ctx: ExecutionContext) -> datetime | None:
            return ctx.deadline

        def fail(_: Nothing) -> None:
            raise ValueError("not today")

        def third_time_lucky(_: Nothing, ctx: ExecutionContext) -> int:
            if ctx.attempt < 3:
                raise ValueError("not yet")
            return ctx.attempt

        def stage(_: Nothing, ctx: ExecutionContext) -> list[int]:
            done: list[int] = ctx.checkpoint or []
            if ctx.attempt < 3:
                ctx.save([*done, ctx.attempt])
                raise ValueError("not yet")
            return done

        def wait(_: Nothing, ctx: ExecutionContext) -> str:
            ctx.progress(3, 4, "nearly")
            self.begun.append("wait")
            while not self.go_on.wait(0.01):
                ctx.check()
            return "waited"

        async def awaited(_: Nothing) -> str:
            await asyncio.sleep(0)
            return "awaited"

        async def endless(_: Nothing) -> None:
            await asyncio.sleep(60)

        def chatter(_: Nothing, ctx: ExecutionContext) -> None:
            ctx.logger.info("first")
            print("second")  # noqa: T201 - what is printed is received too
            logging.getLogger("elsewhere").warning("third")

        public("who", who, list[str])
        public("until", until, datetime | None)
        public("fail", fail)
        retries = RetryPolicy(5, initial_delay=0.01, max_delay=0.01)
        public("lucky", third_time_lucky, int, retries=retries)
        public("stage", stage, list[int], retries=retries)
        public("wait", wait, str)
        public("awaited", awaited, str)
        public("endless", endless, timeout=0.05)
        public("chatter", chatter)


class Awaited:
    """A client or handle of the asyncio face, to be used like the other."""

    def __init__(self, face: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._face = face
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = getattr(self._face, name)(*args, **kwargs)
            if inspect.isawaitable(answer):
                answer = self._loop.run_until_complete(answer)
            return Awaited(answer, self._loop) if hasattr(answer, "cancel") else answer

        return call


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    tasks = Tasks()
    yield tasks
    tasks.go_on.set()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(params=["local", "queue", "async-local", "async-queue"])
def client(
    request: pytest.FixtureRequest,
    tasks: Tasks,
    loop: asyncio.AbstractEventLoop,
    make_queue: Callable[..., TaskQueue],
    crew: Any,
    redis_server: Server,
    key_prefix: str,
) -> Iterator[Any]:
    """A client at each place, with two that run its tasks."""
    registry = tasks.registry
    if request.param.endswith("local"):
        with Pool(2) as pool:
            if request.param == "local":
                yield TaskClient.local(registry, pool=pool, policy=POLICY)
            else:
                face = AsyncTaskClient.local(registry, pool=pool, policy=POLICY)
                yield Awaited(face, loop)
            tasks.go_on.set()
        return
    for _ in range(2):
        crew.start(make_queue(registry=registry, policy=POLICY))
    if request.param == "queue":
        yield TaskClient(make_queue(registry=registry, policy=POLICY))
    else:
        queue = AsyncTaskQueue(
            key_prefix, redis_server.url, registry=registry, policy=POLICY
        )
        yield Awaited(AsyncTaskClient(queue), loop)
        loop.run_until_complete(internals_of(queue).driver.close())
        loop.run_until_complete(internals_of(queue).driver.client.aclose())
    tasks.go_on.set()


@pytest.mark.parametrize("payload", [{"path": "a", "width": 7}, Resize("a", 7)])
def test_a_call_is_answered_with_the_result(client: Any, payload: Any) -> None:
    assert client.call(ANN, "images.resize", payload, str, 10) == "a@7"


def test_a_call_gives_a_handle_to_ask_later(client: Any) -> None:
    handle = client.submit(ANN, "images.resize", {"path": "a"}, str)

    assert handle.result(10) == "a@5"
    assert handle.result(10) == "a@5"
    assert handle.state().state is State.DONE
    assert handle.cancel() == "ended"


def test_a_task_learns_on_whose_behalf_it_runs(client: Any) -> None:
    context = ClientContext("ann", ("editor", "viewer"))

    called = client.call(context, "who", {}, list[str], 10)

    assert called == ["ann", "editor", "viewer"]


def test_a_task_that_nobody_knows_is_refused_first(client: Any, tasks: Tasks) -> None:
    with pytest.raises(UnknownTask, match=r"no task 'images\.crop' here"):
        client.call(ANN, "images.crop", {}, str, 10)
    with pytest.raises(UnknownTask, match="no version 2 here, only 1"):
        client.submit(ANN, "images.resize", {"path": "a"}, str, version=2)


@pytest.mark.parametrize("payload", [{"path": "a"}, {"wrong": 1}])
def test_who_may_not_call_is_refused_before_the_payload_is_read(
    client: Any, tasks: Tasks, payload: Any
) -> None:
    bob = ClientContext("bob", ["viewer"])

    with pytest.raises(NotPermitted, match=r"'bob' may not .* 'images.resize'.*viewer"):
        client.call(bob, "images.resize", payload, str, 10)
    with pytest.raises(NotPermitted):
        client.submit(ClientContext(), "images.resize", payload, str)
    assert tasks.begun == []


def test_a_payload_that_does_not_match_is_refused(client: Any, tasks: Tasks) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        client.call(ANN, "images.resize", {"path": 7}, str, 10)

    assert (refused.value.task, refused.value.field) == ("images.resize", "path")
    assert tasks.begun == []


def test_a_task_that_raises_is_told_with_its_error(client: Any) -> None:
    with pytest.raises(TaskFailed, match="ValueError: not today") as failed:
        client.call(ANN, "fail", {}, str, 10)

    assert "raise ValueError" in failed.value.traceback


def test_a_task_is_tried_again_as_it_says(client: Any) -> None:
    assert client.call(ANN, "lucky", {}, int, 10) == 3


def test_a_task_goes_on_where_it_was(client: Any) -> None:
    assert client.call(ANN, "stage", {}, list[int], 10) == [1, 2]


def test_a_task_tells_how_far_it_is(client: Any, tasks: Tasks) -> None:
    handle = client.submit(ANN, "wait", {}, str)
    wait_until(lambda: tasks.begun == ["wait"], 10, "it to run")

    assert str(handle.state().progress) == "3 of 4, nearly"


def test_coroutines_are_run_and_end_when_their_time_is_over(client: Any) -> None:
    assert client.call(ANN, "awaited", Nothing(), str, 10) == "awaited"
    with pytest.raises(TaskFailed, match="TimeoutError"):
        client.call(ANN, "endless", {}, str, 10)


def test_a_result_of_another_type_is_refused(client: Any) -> None:
    with pytest.raises(ResultInvalid):
        client.call(ANN, "images.resize", {"path": "a"}, int, 10)


def test_a_caller_that_waits_in_vain_is_told_where_its_task_is(
    client: Any, tasks: Tasks
) -> None:
    with pytest.raises(ResultTimeout, match=r"within 0\.5001 s: it is running on "):
        client.call(ANN, "wait", {}, str, 0.5001)
    handle = client.submit(ANN, "wait", {}, str)
    with pytest.raises(ResultTimeout):
        handle.result(0.05)
    tasks.go_on.set()
    assert handle.result(10) == "waited"


def test_a_running_task_is_asked_to_stop(client: Any, tasks: Tasks) -> None:
    handle = client.submit(ANN, "wait", {}, str)
    wait_until(lambda: handle.state().state is State.RUNNING, 10, "it to run")

    assert handle.cancel() == "asked"

    with pytest.raises(TaskCancelled):
        handle.result(10)
    assert handle.state().state is State.CANCELLED


def test_what_waits_is_cancelled_at_once(client: Any, tasks: Tasks) -> None:
    busy = [client.submit(ANN, "wait", {}, str) for _ in range(2)]
    wait_until(lambda: tasks.begun == ["wait", "wait"], 10, "both to be busy")
    handle = client.submit(ANN, "images.resize", {"path": "never"}, str)

    assert handle.cancel() == "cancelled"

    tasks.go_on.set()
    assert [one.result(10) for one in busy] == ["waited", "waited"]
    with pytest.raises(TaskCancelled, match="by its caller"):
        handle.result(10)
    assert "never" not in tasks.begun


def test_a_task_is_not_begun_after_its_deadline(client: Any, tasks: Tasks) -> None:
    past = datetime.now(timezone.utc) - timedelta(minutes=1)
    context = ClientContext("ann", ["editor"], deadline=past)

    handle = client.submit(context, "images.resize", {"path": "late"}, str)

    with pytest.raises(TaskExpired, match="it did not start by"):
        handle.result(10)
    assert tasks.begun == []


@pytest.mark.parametrize("timeout", [1e300, 1e308, 10**18])
def test_a_caller_may_wait_as_long_as_it_likes(client: Any, timeout: float) -> None:
    patient = ClientContext("ann", ["editor"], deadline=timeout)

    called = client.call(patient, "images.resize", {"path": "a"}, str, timeout)
    handle = client.submit(patient, "images.resize", {"path": "b"}, str)

    assert (called, handle.result(10)) == ("a@5", "b@5")


def test_a_task_learns_when_its_caller_gives_up(client: Any) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=20)
    context = ClientContext("ann", deadline=soon)

    for asked in (
        client.submit(context, "until", {}, datetime).result(10),
        client.call(context, "until", {}, datetime, 30),
    ):
        assert abs(asked - soon) < timedelta(milliseconds=2)
    sooner = client.call(context, "until", {}, datetime, 10)
    assert sooner < soon
    handle = client.submit(ANN, "until", {}, datetime | None)
    assert handle.result(10) is None


def test_a_task_whose_caller_has_stopped_to_wait_is_not_begun(
    client: Any, tasks: Tasks
) -> None:
    busy = [client.submit(ANN, "wait", {}, str) for _ in range(2)]
    wait_until(lambda: tasks.begun == ["wait", "wait"], 10, "both to be busy")

    with pytest.raises(ResultTimeout, match=r"it is (waiting|assigned)"):
        client.call(ANN, "images.resize", {"path": "late"}, str, 0.1)

    tasks.go_on.set()
    assert [one.result(10) for one in busy] == ["waited", "waited"]
    last = client.call(ANN, "images.resize", {"path": "last"}, str, 10)
    assert last == "last@5"
    assert "late" not in tasks.begun


def test_a_caller_receives_what_its_task_tells(client: Any) -> None:
    channel = LoggingChannel.memory()
    context = ClientContext("ann", logging=channel)

    client.call(context, "chatter", {}, type(None), 10)

    told = [(record.stream, record.message) for record in channel.records]
    assert told == [("log", "first"), ("stdout", "second"), ("log", "third")]


def test_what_a_task_told_can_be_read_later(client: Any) -> None:
    context = ClientContext("ann", logging=LoggingChannel.memory())
    handle = client.submit(context, "chatter", {}, type(None))
    handle.result(10)

    channel = LoggingChannel.memory()
    handle.follow(channel)

    assert [one.message for one in handle.logs()] == ["first", "second", "third"]
    assert channel.records == handle.logs()


@pytest.mark.parametrize("timeout", [0, -1, None, float("nan"), "soon"])
def test_a_wait_has_an_end(client: Any, timeout: Any) -> None:
    with pytest.raises(ConfigurationError):
        client.call(ANN, "wait", {}, str, timeout)


def test_a_call_says_who_calls(client: Any) -> None:
    with pytest.raises(ConfigurationError, match="ClientContext"):
        client.call(None, "who", {}, str, 10)


def test_a_client_that_knows_only_the_contract_calls_through_the_queue(
    make_queue: Callable[..., TaskQueue], tasks: Tasks, crew: Any
) -> None:
    contracts = Registry()
    contracts.add_contract(RESIZE)
    crew.start(make_queue(registry=tasks.registry, policy=POLICY))

    client = TaskClient(make_queue(registry=contracts))

    payload = Resize("far", 1)
    assert client.call(ANN, "images.resize", payload, str, 10) == "far@1"


def test_a_registry_that_is_filled_later_is_shared_all_the_same(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    registry = Registry()
    queue = make_queue(registry=registry)

    @queue.task(name="add")
    def add(left: int, right: int) -> int:
        return left + right

    crew.start(queue)
    client = TaskClient(make_queue(registry=registry))

    sum_ = client.call(ANN, "add", {"left": 1, "right": 2}, int, 10)
    assert sum_ == 3
    with pytest.raises(PayloadInvalid, match="give a dict"):
        client.call(ANN, "add", (1, 2), int, 10)


def test_a_contract_without_an_implementation_does_not_run_here() -> None:
    registry = Registry()
    registry.add_contract(RESIZE)
    with ThreadPoolExecutor(1) as pool:
        client = TaskClient.local(registry, pool=pool)

        for payload in ({"path": "a"}, {"wrong": 1}):
            with pytest.raises(UnknownTask):
                client.call(ANN, "images.resize", payload, str, 10)
        with registry.fake(RESIZE, lambda request: f"fake {request.path}"):
            answer = client.call(ANN, "images.resize", {"path": "a"}, str, 10)

    assert answer == "fake a"


def test_a_task_that_takes_too_long_here_is_interrupted() -> None:
    registry = Registry()
    spinning, sleeping = (registry.contract(n, Nothing) for n in ("spin", "sleep"))

    @registry.implements(spinning, timeout=0.05)
    def spin(_: Nothing) -> None:
        while True:
            sum(range(100))

    @registry.implements(sleeping, timeout=0.05)
    async def sleep(_: Nothing) -> None:
        await asyncio.sleep(60)

    with Pool(1) as pool:
        client = TaskClient.local(registry, pool=pool)
        for name in ("spin", "sleep"):
            with pytest.raises(TaskFailed, match="TimeoutError: it ran for longer"):
                client.call(ANN, name, {}, type(None), 10)


@pytest.mark.parametrize("kind", [TaskClient, AsyncTaskClient])
def test_what_runs_here_is_as_large_as_a_queue_would_take(kind: Any) -> None:
    registry = Registry()
    contract = registry.contract("repeat", Text, str)

    @registry.implements(contract)
    def repeat(request: Text) -> str:
        return request.text * 10

    async def call(client: Any, text: str) -> str:
        answer = client.call(ANN, "repeat", {"text": text}, str, 10)
        return str(await answer if inspect.isawaitable(answer) else answer)

    with ThreadPoolExecutor(1) as pool:
        client = kind.local(registry, pool=pool, max_payload=100, max_result=100)
        assert asyncio.run(call(client, "a" * 9)) == "a" * 90
        with pytest.raises(TaskFailed, match="102 bytes, and the queue takes 100"):
            asyncio.run(call(client, "a" * 10))
        with pytest.raises(PayloadTooLarge, match="limit is 100"):
            asyncio.run(call(client, "a" * 100))
        with pytest.raises(PayloadTooLarge, match="limit is 1,048,576"):
            asyncio.run(call(kind.local(registry, pool=pool), "a" * 2_000_000))
        with pytest.raises(ConfigurationError, match="max_result"):
            kind.local(registry, pool=pool, max_result=0)


def test_a_pool_that_stops_answers_those_who_wait(tasks: Tasks) -> None:
    pool = ThreadPoolExecutor(1)
    client = TaskClient.local(tasks.registry, pool=pool)
    running = client.submit(ANN, "wait", {}, str)
    waiting = client.submit(ANN, "images.resize", {"path": "a"}, str)
    wait_until(lambda: tasks.begun == ["wait"], 10, "it to be busy")

    pool.shutdown(wait=False, cancel_futures=True)

    with pytest.raises(TaskCancelled, match="its pool was stopped"):
        waiting.result(10)
    tasks.go_on.set()
    assert running.result(10) == "waited"
    with pytest.raises(RuntimeError):
        client.submit(ANN, "images.resize", {"path": "a"}, str)


def test_what_runs_here_is_told_until_too_many_others_have_ended(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workstealing.client.local._KEPT", 3)
    with Pool(1) as pool:
        client = TaskClient.local(tasks.registry, pool=pool)
        handles = []
        for number in range(5):
            payload = {"path": str(number)}
            handle = client.submit(ANN, "images.resize", payload, str)
            assert handle.result(10)
            handles.append(handle)

    with pytest.raises(TaskNotFound):
        handles[0].result(10)
    assert handles[0].state().state is State.UNKNOWN
    assert handles[0].cancel() == "unknown"
    assert handles[-1].result(10) == "4@5"
