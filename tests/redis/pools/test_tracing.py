"""A request, the task that it submits, and the task which that submits: one trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from redis import Redis

from workstealing import (
    AsyncTaskQueue,
    ClientContext,
    TaskQueue,
    Worker,
    WorkerPool,
)
from workstealing.errors import QueueFull
from workstealing.telemetry import OpenTelemetryObserver, flush_events
from workstealing.testing import Server, wait_until

KINDS = ["threads", "processes", "asyncio"]
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

_TRACED = """
    import json
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult
    from workstealing.telemetry import OpenTelemetryObserver

    spans = Redis.from_url({url!r})


    class Noting(SpanExporter):
        def export(self, ended):
            for span in ended:
                noted = {{
                    "name": span.name,
                    "trace": span.context.trace_id,
                    "span": span.context.span_id,
                    "parent": span.parent and span.parent.span_id,
                    "pid": os.getpid(),
                }}
                spans.rpush(f"{{NAME}}:spans", json.dumps(noted))
            return SpanExportResult.SUCCESS


    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Noting()))
    tracer = provider.get_tracer("app")
    observed = TaskQueue(
        NAME, {url!r}, observers=[OpenTelemetryObserver(tracer=tracer)]
    )


    @observed.task(name="first")
    def first() -> str:
        return second.submit().id


    @observed.task(name="first_later")
    async def first_later() -> str:
        await asyncio.sleep(0)
        return second_later.submit().id


    @observed.task(name="second")
    def second() -> None:
        with tracer.start_as_current_span("query"):
            pass


    @observed.task(name="second_later")
    async def second_later() -> None:
        await asyncio.sleep(0)
        with tracer.start_as_current_span("query"):
            pass
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["first", "first_later"])
def test_a_request_and_all_that_comes_of_it_are_one_trace(
    make_app: Callable[..., Any],
    pools: Callable[..., WorkerPool],
    redis_server: Server,
    redis_client: Redis,
    key_prefix: str,
    kind: str,
    task: str,
) -> None:
    app = make_app(more=_TRACED.format(url=redis_server.url))
    pools(app.observed, 2, kind).start()

    with app.tracer.start_as_current_span("GET /"):
        handle = getattr(app, task).submit()

    app.observed.handle(handle.result(timeout=30)).result(timeout=30)
    key = f"{key_prefix}:spans"
    wait_until(lambda: redis_client.llen(key) >= 6, 30, "six spans")
    spans = [json.loads(noted) for noted in redis_client.lrange(key, 0, -1)]
    assert len({span["trace"] for span in spans}) == 1
    names = {span["span"]: span["name"] for span in spans}
    other = task.replace("first", "second")
    assert {(names.get(span["parent"]), span["name"]) for span in spans} == {
        (None, "GET /"),
        ("GET /", f"submit {task}"),
        (f"submit {task}", f"run {task}"),
        (f"run {task}", f"submit {other}"),
        (f"submit {other}", f"run {other}"),
        (f"run {other}", "query"),
    }
    pids = {span["name"]: span["pid"] for span in spans}
    assert (pids["GET /"] == pids[f"run {task}"]) == (kind != "processes")


class Traced:
    """A tracer whose spans are kept in memory, and an observer that uses it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")
        self.observer = OpenTelemetryObserver(tracer=self.tracer)

    def spans(self) -> dict[str, Any]:
        assert flush_events(20)
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
def queue(redis_server: Server, key_prefix: str, traced: Traced) -> Iterator[TaskQueue]:
    with TaskQueue(
        key_prefix, redis_server.url, observers=[traced.observer], max_length=3
    ) as queue:
        yield queue


def test_spans_have_the_attributes_of_the_conventions(
    queue: TaskQueue, traced: Traced
) -> None:
    @queue.task(name="fail")
    def fail() -> None:
        raise ValueError("never")

    handle = fail.submit()
    Worker(queue, pool="mill").run(until_empty=True)

    submit, run = traced.spans()["submit fail"], traced.spans()["run fail"]
    assert (submit.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    common = {
        "messaging.system": "workstealing",
        "messaging.destination.name": queue.name,
        "messaging.message.id": handle.id,
        "workstealing.task.name": "fail",
    }
    assert submit.attributes == {
        **common,
        "messaging.operation.name": "submit",
        "messaging.operation.type": "send",
    }
    wait = run.attributes["workstealing.task.wait"]
    assert run.attributes == {
        **common,
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.client.id": "mill.0",
        "workstealing.task.attempt": 1,
        "workstealing.task.outcome": "failed",
        "workstealing.task.wait": wait,
        "error.type": "ValueError",
    }
    assert run.status.status_code is StatusCode.ERROR
    assert [event.name for event in run.events] == ["exception"]
    assert run.parent.span_id == submit.context.span_id
    assert run.links[0].context.span_id == submit.context.span_id
    assert submit.start_time <= submit.end_time <= run.end_time


def test_a_batch_is_one_submit_and_a_run_for_each(
    queue: TaskQueue, traced: Traced
) -> None:
    plain = queue.task(name="plain")(_plain)

    plain.submit_many([(1,), (2,)])
    Worker(queue).run(until_empty=True)

    submit = traced.spans()["submit plain"]
    assert submit.attributes["messaging.batch.message_count"] == 2
    runs = [s for s in traced.exporter.get_finished_spans() if s.name == "run plain"]
    assert [run.parent.span_id for run in runs] == [submit.context.span_id] * 2


def test_a_request_and_the_chain_that_it_submits_are_one_trace(
    queue: TaskQueue, traced: Traced
) -> None:
    plain = queue.task(name="plain")(_plain)
    then = queue.task(name="then")(_plain)

    with traced.tracer.start_as_current_span("GET /"):
        handle = (plain.s(1) | then.s() | then.s()).submit()
    Worker(queue).run(until_empty=True)

    assert handle.result(timeout=30) == 1
    flush_events()
    spans = traced.spans()
    ended = traced.exporter.get_finished_spans()
    names = sorted(span.name for span in ended)
    runs = ["run plain", "run then", "run then"]
    assert names == ["GET /", *runs, "submit plain", "submit then"]
    assert len({span.context.trace_id for span in ended}) == 1
    for name in ("plain", "then"):
        assert spans[f"submit {name}"].parent == spans["GET /"].context
        submit = spans[f"submit {name}"].context.span_id
        assert spans[f"run {name}"].parent.span_id == submit


def test_a_trace_that_the_caller_names_is_continued(
    queue: TaskQueue, traced: Traced
) -> None:
    plain = queue.task(name="plain")(_plain)

    plain.options(context=ClientContext(trace=CALLER)).submit(1)
    Worker(queue).run(until_empty=True)

    submit, run = traced.spans()["submit plain"], traced.spans()["run plain"]
    assert f"{run.context.trace_id:032x}" in CALLER
    assert f"{submit.parent.span_id:016x}" in CALLER
    assert run.parent.span_id == submit.context.span_id


def test_a_submit_that_fails_is_a_span_with_the_error(
    queue: TaskQueue, traced: Traced
) -> None:
    plain = queue.task(name="plain")(_plain)

    with pytest.raises(QueueFull):
        plain.submit_many([(n,) for n in range(9)])

    submit = traced.spans()["submit plain"]
    assert submit.status.status_code is StatusCode.ERROR
    assert submit.attributes["error.type"] == "QueueFull"


async def test_asyncio_submits_within_the_current_span(
    redis_server: Server, key_prefix: str, traced: Traced
) -> None:
    url = redis_server.url
    async with AsyncTaskQueue(key_prefix, url, observers=[traced.observer]) as queue:
        plain = queue.task(name="plain")(_plain)
        with traced.tracer.start_as_current_span("GET /"):
            handle = await plain.submit(1)
        async with WorkerPool(queue, 2, "asyncio"):
            assert await handle.result(timeout=30) == 1

    spans = traced.spans()
    assert spans["submit plain"].parent == spans["GET /"].context
    run, submit = spans["run plain"], spans["submit plain"]
    assert run.parent.span_id == submit.context.span_id


def test_a_trace_that_cannot_be_read_begins_a_new_one(
    queue: TaskQueue, traced: Traced
) -> None:
    plain = queue.task(name="plain")(_plain)

    plain.options(context=ClientContext(trace="nonsense")).submit(1)
    Worker(queue).run(until_empty=True)

    spans = traced.spans()
    assert spans["submit plain"].parent is None
    run, submit = spans["run plain"], spans["submit plain"]
    assert run.parent.span_id == submit.context.span_id


def _plain(number: int) -> int:
    return number
