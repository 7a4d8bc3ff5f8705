"""The Sentry hook of the page about hooks reports errors, and only those."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workstealing import (
    ExecutionContext,
    Middleware,
    Retry,
    TaskCall,
    TaskQueue,
    Worker,
    WorkerPool,
)
from workstealing.testing import wait_until

sentry_sdk = pytest.importorskip("sentry_sdk")

PAGE = Path(__file__).parents[3] / "docs" / "hooks.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def hook() -> Middleware:
    """The class of the page, as it stands there."""
    page = PAGE.read_text(encoding="utf-8")
    (block,) = (one for one in BLOCK.findall(page) if "class Sentry" in one)
    names: dict[str, Any] = {
        "Any": Any,
        "ExecutionContext": ExecutionContext,
        "Middleware": Middleware,
        "TaskCall": TaskCall,
    }
    exec(block, names)
    found: Middleware = names["Sentry"]()
    return found


@pytest.fixture
def events() -> Iterator[list[Any]]:
    """What would have been sent."""
    kept: list[Any] = []

    class Keeping(sentry_sdk.transport.Transport):  # type: ignore[misc]
        def capture_envelope(self, envelope: Any) -> None:
            kept.append(envelope.get_event())

    sentry_sdk.init(
        "https://key@sentry.invalid/1", transport=Keeping, default_integrations=False
    )
    yield kept
    sentry_sdk.init()


def errors(events: list[Any]) -> list[tuple[str, str]]:
    return [
        (one["transaction"], one["exception"]["values"][-1]["type"]) for one in events
    ]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_time_limits_are_reported(
    queue: TaskQueue, hook: Middleware, events: list[Any], kind: Any
) -> None:
    queue.use(hook)

    @queue.task(name="spin", timeout=0.2)
    def spin() -> None:
        while True:
            pass

    @queue.task(name="sleep", timeout=0.2)
    async def sleep() -> None:
        await _forever()

    with WorkerPool(queue, 1, kind):
        for task in (spin, sleep):
            task.submit()
        wait_until(lambda: len(events) == 2, 20, "both events")

    assert errors(events) == [("spin", "TimeoutError"), ("sleep", "TimeoutError")]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_what_a_deploy_cuts_off_is_not_reported(
    queue: TaskQueue, hook: Middleware, events: list[Any], kind: Any
) -> None:
    queue.use(hook)
    begun: list[int] = []

    @queue.task(name="sleep")
    async def sleep() -> None:
        begun.append(1)
        await _forever()

    pool = WorkerPool(queue, 1, kind)
    pool.start()
    sleep.submit()
    wait_until(lambda: bool(begun), 20, "it to run")
    pool.stop(timeout=0.0)

    assert events == []


def test_an_exhausted_retry_is_reported_once_with_its_cause(
    queue: TaskQueue, hook: Middleware, events: list[Any]
) -> None:
    queue.use(hook)

    @queue.task(name="fetch", retries=2)
    def fetch(url: str) -> None:
        try:
            raise ConnectionError(503)
        except ConnectionError as error:
            raise Retry(after=0.0) from error

    fetch.submit("a.org")
    Worker(queue).run(until_empty="all")

    assert errors(events) == [("fetch", "ConnectionError")]
    assert events[0]["contexts"]["task"]["arguments"] == {"url": "a.org"}
    assert events[0]["contexts"]["task"]["attempt"] == 3


async def _forever() -> None:
    await asyncio.Event().wait()
