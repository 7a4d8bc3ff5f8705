"""A queue may have middleware and observers at once, in each kind of pool."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from workstealing import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.errors import TaskFailed
from workstealing.telemetry import flush_events
from workstealing.testing import Server, wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]
Told = Callable[[], list[tuple[str, ...]]]

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])

_BOTH = """

    import json
    from contextlib import contextmanager
    from contextvars import ContextVar

    from workstealing import GiveUp, Middleware, NewResult

    tenant = ContextVar("tenant", default="nobody")
    span = ContextVar("span", default="no span")


    def note(*words):
        notes.rpush(f"{NAME}:both", json.dumps(words))


    class Spans:
        def observe(self, event):
            outcome = getattr(event, "outcome", "")
            error = type(getattr(event, "error", None)).__name__
            note(type(event).__name__, event.task, outcome, error)

        def submitting(self, queue, task, number, trace):
            return trace, lambda how: None

        @contextmanager
        def running(self, event):
            token = span.set(f"span of {event.task}")
            try:
                yield lambda ended: None
            finally:
                span.reset(token)


    class Hooks(Middleware):
        async def submitted(self, task):
            note("submitted", task.name)

        def before(self, task, context):
            note("before", task.name, span.get(), tenant.get())
            if task.name == "closed":
                raise GiveUp("the shop is closed")

        async def after(self, task, context, result):
            note("after", task.name, span.get(), tenant.get())
            return NewResult(result + 1)

        def failed(self, task, context, error):
            note("failed", task.name)

        async def retried(self, task, context, error, delay):
            note("retried", task.name, span.get(), tenant.get())

        async def gave_up(self, task, context, error, reason):
            note("gave_up", task.name, type(error).__name__, tenant.get())


    both = TaskQueue(
        NAME,
        notes_url,
        lease=1.0,
        middleware=[Hooks()],
        carry=[tenant],
        observers=[Spans()],
    )


    def listen(context, reason):
        note("on_give_up", context.name, reason)


    @both.task(name="twice", retries=1, on_give_up=listen)
    def twice(number: int) -> int:
        if current_context().attempt == 1:
            raise ValueError("not yet")
        note("run", "twice", span.get(), tenant.get())
        return number


    @both.task(name="twice_later", retries=1)
    async def twice_later(number: int) -> int:
        await asyncio.sleep(0)
        if current_context().attempt == 1:
            raise ValueError("not yet")
        note("run", "twice_later", span.get(), tenant.get())
        return number


    @both.task(name="closed", retries=3, on_give_up=listen)
    def closed() -> None:
        note("run", "closed")


    @both.task(name="stuck", timeout=0.3, on_give_up=listen)
    def stuck() -> None:
        while True:
            sum(range(1000))
"""


@pytest.fixture
def app(make_app: Callable[..., Any], redis_server: Server) -> Any:
    return make_app(more=_BOTH.replace("notes_url", repr(redis_server.url)))


@pytest.fixture
def told(redis_client: Redis, key_prefix: str) -> Told:
    """What hooks, observers and tasks have noted, in any process."""

    def read() -> list[tuple[str, ...]]:
        flush_events()
        noted = redis_client.lrange(f"{key_prefix}:both", 0, -1)
        return [tuple(json.loads(words)) for words in noted]

    return read


@each_kind
@pytest.mark.parametrize("task", ["twice", "twice_later"])
def test_both_see_an_attempt_and_hooks_run_inside_of_its_spans(
    app: Any, pools: Pools, told: Told, kind: str, task: str
) -> None:
    app.tenant.set("acme")
    handle = getattr(app, task).submit(7)
    pools(app.both, 1, kind).start()

    assert handle.result(timeout=30) == 8

    end = ("TaskEnded", task, "done", "NoneType")
    wait_until(lambda: end in told(), 10, "the last event")
    hooks = [words for words in told() if not words[0].startswith("Task")]
    place = (task, f"span of {task}", "acme")
    assert hooks == [
        ("submitted", task),
        ("before", *place),
        ("failed", task),
        ("retried", *place),
        ("before", *place),
        ("run", *place),
        ("after", *place),
    ]
    events = [words for words in told() if words[0].startswith("Task")]
    assert events == [
        ("TaskSubmitted", task, "", "NoneType"),
        ("TaskStarted", task, "", "NoneType"),
        ("TaskEnded", task, "retry", "ValueError"),
        ("TaskRetried", task, "", "ValueError"),
        ("TaskStarted", task, "", "NoneType"),
        end,
    ]


@each_kind
def test_both_see_a_task_that_a_hook_gives_up(
    app: Any, pools: Pools, told: Told, kind: str
) -> None:
    handle = app.closed.submit()
    pools(app.both, 1, kind).start()

    with pytest.raises(TaskFailed, match="the shop is closed"):
        handle.result(timeout=30)

    given_up = ("TaskGivenUp", "closed", "", "NoneType")
    wait_until(lambda: given_up in told(), 10, "the last event")
    assert ("TaskEnded", "closed", "failed", "GiveUp") in told()
    hooks = [words for words in told() if not words[0].startswith("Task")]
    assert hooks == [
        ("submitted", "closed"),
        ("before", "closed", "span of closed", "nobody"),
        ("on_give_up", "closed", "the shop is closed (GiveUp was raised)"),
        ("gave_up", "closed", "GiveUp", "nobody"),
    ]


@each_kind
def test_both_are_told_once_of_a_task_over_its_time(
    app: Any, pools: Pools, told: Told, kind: str
) -> None:
    handle = app.stuck.submit()
    pool = pools(app.both, 1, kind)
    pool.start()

    with pytest.raises(TaskFailed, match="TimeoutError"):
        handle.result(timeout=30)

    wanted = dict.fromkeys(
        ("TaskStarted", "TaskEnded", "TaskGivenUp", "before", "failed"), 1
    )
    wanted |= {"TaskSubmitted": 1, "submitted": 1, "on_give_up": 1, "gave_up": 1}
    wait_until(lambda: Counter(w[0] for w in told()) == wanted, 20, "all to be told")
    pool.stop()
    assert Counter(words[0] for words in told()) == wanted
    assert ("gave_up", "stuck", "TimeoutError", "nobody") in told()


def test_the_sync_twin_of_a_queue_has_both_too(app: Any, redis_server: Server) -> None:
    queue = AsyncTaskQueue(
        app.NAME,
        redis_server.url,
        middleware=[app.Hooks()],
        carry=[app.tenant],
        observers=[app.Spans()],
    )
    own, twin = internals_of(queue), internals_of(queue.sync())

    assert twin.middleware is own.middleware
    assert twin.carried is not None
    assert twin.observers is not None
