"""Resources are opened before the first task, handed over, and closed at the end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from workstealing import AsyncTaskQueue, Worker
from workstealing.errors import ConfigurationError, ResourceFailed, TaskDead
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]

_RESOURCES = """
    from collections.abc import AsyncIterator, Iterator
    from typing import Annotated

    from workstealing import INJECTED, Resource


    def note(text: str) -> None:
        notes.rpush(f"{NAME}:told", text)


    class Database:
        pass


    class AsyncDatabase:
        def __init__(self) -> None:
            self.loop = asyncio.get_running_loop()


    @queue.resource
    def database() -> Iterator[Database]:
        if notes.exists(f"{NAME}:down"):
            raise ConnectionError("the database is down")
        note("open")
        yield Database()
        note("closed")
        raise ValueError("closing went wrong")


    @queue.resource
    async def async_database() -> AsyncIterator[AsyncDatabase]:
        if notes.exists(f"{NAME}:async_down"):
            raise ConnectionError("the other database is down")
        await asyncio.sleep(0)
        note("async open")
        yield AsyncDatabase()
        await asyncio.sleep(0)
        note("async closed")


    @queue.resource
    def lifespan() -> Iterator[None]:
        note("begin")
        yield
        note("end")


    @queue.task(name="shared")
    def shared(
        number: int, db: Annotated[Database, Resource] = INJECTED
    ) -> list[str]:
        return [str(number), type(db).__name__, str(id(db))]


    @queue.task(name="own_loop")
    async def own_loop(
        adb: Annotated[AsyncDatabase, Resource],
        db: Annotated[Database, Resource],
    ) -> bool:
        await asyncio.sleep(0)
        return adb.loop is asyncio.get_running_loop() and isinstance(db, Database)


    @queue.task(name="linger")
    async def linger(adb: Annotated[AsyncDatabase, Resource]) -> None:
        note("lingers")
        await asyncio.sleep(100)
"""

KINDS = [
    ("threads", {}),
    ("asyncio", {}),
    ("processes", {"start_method": "spawn"}),
    ("processes", {"start_method": "forkserver"}),
]


@pytest.fixture
def told(redis_client: Redis, key_prefix: str) -> Callable[[], list[str]]:
    def read() -> list[str]:
        found = redis_client.lrange(f"{key_prefix}:told", 0, -1)
        return [entry.decode() for entry in found]

    return read


@pytest.fixture
def app(make_app: Callable[..., Any]) -> Any:
    return make_app(more=_RESOURCES)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_resources_are_opened_once_and_handed_to_tasks_by_type(
    app: Any,
    pools: Pools,
    told: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
    kind: str,
    options: dict[str, Any],
) -> None:
    pool = pools(app.queue, 1, kind, **options)
    pool.start()

    handles = app.shared.submit_many([(n,) for n in range(20)])
    later = [app.own_loop.submit() for _ in range(5)]
    results = [handle.result(timeout=30) for handle in handles]

    assert [(a, b) for a, b, _ in results] == [(str(n), "Database") for n in range(20)]
    assert len({identity for _, _, identity in results}) == 1
    assert all(handle.result(timeout=10) for handle in later)
    pool.stop()
    assert told() == ["open", "begin", "async open", "async closed", "end", "closed"]
    assert "resource database of worker" in caplog.text
    assert "closing went wrong" in caplog.text


def test_a_plain_worker_opens_and_closes_resources_too(
    app: Any, told: Callable[[], list[str]]
) -> None:
    handles = [app.own_loop.submit(), app.shared.submit(1)]

    Worker(app.queue).run(until_empty=True)

    assert handles[0].result(timeout=5) is True
    assert told() == ["open", "begin", "async open", "async closed", "end", "closed"]


def test_each_thread_has_an_event_loop_and_its_resources(
    app: Any, pools: Pools, told: Callable[[], list[str]]
) -> None:
    pool = pools(app.queue, 3, "threads")
    pool.start()
    assert all(app.own_loop.submit().result(timeout=10) for _ in range(9))
    pool.scale(1)
    pool.stop()

    assert (told().count("async open"), told().count("async closed")) == (3, 3)
    assert (told().count("open"), told().count("closed")) == (1, 1)


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_resources_are_closed_by_a_hot_stop(
    app: Any, pools: Pools, told: Callable[[], list[str]], kind: str
) -> None:
    pool = pools(app.queue, 1, kind)
    pool.start()
    app.linger.submit()
    wait_until(lambda: "lingers" in told(), 30, "the task")

    assert pool.stop(hot=True) == 1

    assert told()[-3:] == ["async closed", "end", "closed"]


@pytest.mark.parametrize("which", ["down", "async_down"])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_resource_that_fails_stops_the_pool_before_it_takes_a_task(
    app: Any,
    pools: Pools,
    redis_client: Redis,
    key_prefix: str,
    which: str,
    kind: str,
    options: dict[str, Any],
) -> None:
    redis_client.set(f"{key_prefix}:{which}", 1)
    app.add.submit(1, 2)
    pool = pools(app.queue, 2, kind, **options)

    def work() -> None:
        pool.start()
        pool.wait(30)

    with pytest.raises(ResourceFailed, match="database is down") as failed:
        work()

    assert failed.value.resource in ("database", "async_database")
    counts = app.queue.counts()
    assert (counts.inbox[1], counts.assigned, counts.leases) == (1, 0, {})


def test_what_was_opened_is_closed_if_another_resource_fails(
    app: Any,
    redis_client: Redis,
    key_prefix: str,
    told: Callable[[], list[str]],
) -> None:
    redis_client.set(f"{key_prefix}:async_down", 1)

    with pytest.raises(ResourceFailed, match="the other database is down"):
        Worker(app.queue).run(until_empty=True)

    assert told() == ["open", "begin", "end", "closed"]


def test_a_child_that_is_replaced_waits_for_a_resource_to_come_back(
    app: Any,
    pools: Pools,
    redis_client: Redis,
    key_prefix: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pools(app.queue, 1, "processes").start()
    assert app.add.submit(1, 2).result(timeout=30) == 3

    redis_client.set(f"{key_prefix}:down", 1)
    handle = app.leave.submit()
    wait_until(lambda: "did not start" in caplog.text, 30, "a failed start")
    redis_client.delete(f"{key_prefix}:down")

    assert handle.result(timeout=30) == "stayed"


def test_a_thread_that_is_added_and_cannot_open_its_resources_ends_the_worker(
    app: Any, pools: Pools, redis_client: Redis, key_prefix: str
) -> None:
    pool = pools(app.queue, 1, "threads")
    pool.start()
    assert app.own_loop.submit().result(timeout=10)

    redis_client.set(f"{key_prefix}:async_down", 1)
    pool.scale(2)

    with pytest.raises(ResourceFailed, match="the other database is down"):
        pool.wait(30)
    assert app.queue.counts().leases == {}


def test_a_task_that_asks_for_what_nobody_yields_stops_the_worker(
    app: Any, pools: Pools
) -> None:
    app.queue.task(name="greedy")(_greedy)

    for kind in ("threads", "asyncio", "processes"):
        with pytest.raises(ConfigurationError, match="'greedy' asks for"):
            pools(app.queue, 1, kind).start()
    with pytest.raises(ConfigurationError, match="'greedy' asks for"):
        Worker(app.queue).run(until_empty=True)


def test_a_task_that_was_defined_too_late_is_a_dead_letter(
    make_app: Callable[..., Any], pools: Pools
) -> None:
    app = make_app()
    pools(app.queue, 1, "threads").start()
    late = app.queue.task(name="greedy")(_greedy)

    with pytest.raises(TaskDead, match="before the worker starts"):
        late.submit().result(timeout=10)


async def test_resources_are_opened_in_the_event_loop_of_the_caller(
    app: Any, redis_server: Any, key_prefix: str, told: Callable[[], list[str]]
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url, registry=app.queue.registry)
    handle = app.own_loop.submit()

    async with WorkerPool(queue, 2, "asyncio"):
        assert await queue.handle(handle.id).result(timeout=10) is True

    await queue.close()
    assert told() == ["open", "begin", "async open", "async closed", "end", "closed"]


def test_the_command_says_which_resource_failed_and_exits_with_4(
    write_app: Callable[..., str],
    tmp_path: Path,
    redis_client: Redis,
    key_prefix: str,
) -> None:
    redis_client.set(f"{key_prefix}:down", 1)
    module = write_app(more=_RESOURCES)

    for kind in ("threads", "processes"):
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("workstealing")), "worker"),
                *(f"{module}:queue", "--kind", kind),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

        assert done.returncode == 4, done.stderr
        assert "ConnectionError: the database is down" in done.stderr


def _greedy(odd: Any = None) -> None: ...


def _ask_for_something() -> None:
    from typing import Annotated

    from workstealing import Resource

    _greedy.__annotations__["odd"] = Annotated[Path, Resource]


_ask_for_something()
