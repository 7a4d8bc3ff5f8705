"""How users write hooks and resources; checked by mypy, never run.

A line that must be refused has a `type: ignore` that names the error: if it were not
refused, the comment would be one too many, which is an error as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Annotated, Any

from typing_extensions import assert_type

from workstealing import (
    INJECTED,
    AsyncTaskHandle,
    AsyncTaskQueue,
    ExecutionContext,
    Middleware,
    NewResult,
    Resource,
    TaskCall,
    TaskHandle,
    TaskQueue,
)


class Database:
    def count(self, day: str) -> int:
        return len(day)


tenant: ContextVar[str] = ContextVar("tenant")
queue = TaskQueue("q", carry=[tenant])
async_queue = AsyncTaskQueue("q", carry=[tenant])


@queue.resource
def database() -> Iterator[Database]:
    yield Database()


@async_queue.resource
async def async_database() -> AsyncIterator[Database]:
    yield Database()


assert_type(next(database()), Database)


@queue.task
def report(day: str, db: Annotated[Database, Resource] = INJECTED) -> int:
    return db.count(day)


@async_queue.task(retries=2)
def async_report(day: str, db: Annotated[Database, Resource] = INJECTED) -> int:
    return db.count(day)


@queue.task
def strict(db: Annotated[Database, Resource], day: str) -> int:
    return db.count(day)


def submit() -> None:
    # A caller is not asked for what a worker fills in …
    assert_type(report.submit("monday"), TaskHandle[int])
    report.submit(1)  # type: ignore[arg-type]
    report.submit()  # type: ignore[call-arg]
    many = report.submit_many([("monday",), {"day": "friday"}], ids=["m", "f"])
    assert_type(many, list[TaskHandle[int]])
    report.submit_many(1)  # type: ignore[arg-type]
    # … and a test may give it.
    report("monday", Database())
    report("monday", db="no database")  # type: ignore[arg-type]
    # Without the default, a type checker does ask: a ParamSpec cannot drop it.
    strict.submit(day="monday")  # type: ignore[call-arg]


async def submit_async() -> None:
    assert_type(await async_report.submit("monday"), AsyncTaskHandle[int])


class Plain(Middleware):
    def before(self, task: TaskCall, context: ExecutionContext) -> None:
        assert_type(task.name, str)
        task.name.upper()
        task.arguments["day"] = "friday"  # type: ignore[index]

    def after(
        self, task: TaskCall, context: ExecutionContext, result: Any
    ) -> NewResult | None:
        return NewResult(result) if context.attempt == 1 else None


class Awaited(Middleware):
    async def submitted(self, task: TaskCall) -> None: ...

    async def before(self, task: TaskCall, context: ExecutionContext) -> None: ...

    async def after(
        self, task: TaskCall, context: ExecutionContext, result: Any
    ) -> NewResult:
        return NewResult(1)

    async def gave_up(
        self,
        task: TaskCall,
        context: ExecutionContext,
        error: BaseException,
        reason: str,
    ) -> None: ...


class Wrong(Middleware):
    def after(  # type: ignore[override]
        self, task: TaskCall, context: ExecutionContext, result: Any
    ) -> int:
        return 1


queue.use(Plain())
async_queue.use(Awaited())
queue.use(Plain)  # type: ignore[arg-type]
