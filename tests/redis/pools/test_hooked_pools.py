"""Hooks are told in each kind of pool, and of what ends with its process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from workstealing.errors import TaskFailed
from workstealing.testing import wait_until
from workstealing.workers import supervisor
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]

_HOOKS = """

    from contextvars import ContextVar

    from workstealing import GiveUp, Middleware, NewResult

    tenant = ContextVar("tenant", default="nobody")


    class Noting(Middleware):
        def before(self, task, context):
            notes.rpush(f"{NAME}:hooks", f"before {task.name}")
            if task.name == "who":
                raise GiveUp("nobody asks")

        async def after(self, task, context, result):
            notes.rpush(f"{NAME}:hooks", f"after {task.name}")
            return NewResult(result + 1)

        def failed(self, task, context, error):
            notes.rpush(f"{NAME}:hooks", f"failed {task.name} {type(error).__name__}")

        def gave_up(self, task, context, error, reason):
            if task.name == "deaf":
                reason = type(error).__name__
            notes.rpush(f"{NAME}:hooks", f"gave_up {task.name} {reason}")


    queue.use(Noting())
"""


@pytest.fixture
def told(redis_client: Redis, key_prefix: str) -> Callable[[], list[str]]:
    """What the hooks have noted."""

    def read() -> list[str]:
        found = redis_client.lrange(f"{key_prefix}:hooks", 0, -1)
        return [entry.decode() for entry in found]

    return read


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("threads", {}),
        ("asyncio", {}),
        ("processes", {"start_method": "spawn"}),
        ("processes", {"start_method": "forkserver"}),
    ],
)
def test_hooks_are_told_wherever_the_task_runs(
    make_app: Callable[..., Any],
    pools: Pools,
    told: Callable[[], list[str]],
    kind: str,
    options: dict[str, Any],
) -> None:
    app = make_app(more=_HOOKS)
    pools(app.queue, 1, kind, **options).start()

    assert app.add.submit(1, 2).result(timeout=30) == 4
    assert app.add_later.submit(3, 4).result(timeout=10) == 8
    with pytest.raises(TaskFailed, match="nobody asks"):
        app.who.submit().result(timeout=10)

    gave_up = "gave_up who nobody asks (GiveUp was raised)"
    wait_until(lambda: gave_up in told(), 10, "the last note")
    assert told() == [
        *("before add", "after add"),
        *("before add_later", "after add_later"),
        *("before who", gave_up),
    ]


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_hooks_are_told_of_a_task_over_its_time(
    make_app: Callable[..., Any],
    pools: Pools,
    told: Callable[[], list[str]],
    redis_client: Redis,
    kind: str,
) -> None:
    app = make_app(more=_HOOKS)
    pools(app.queue, 1, kind).start()

    too_long = app.endless.submit()
    with pytest.raises(TaskFailed, match="TimeoutError"):
        too_long.result(timeout=30)

    wait_until(lambda: len(told()) == 3, 10, "the last note")
    before, failed, gave_up = told()
    assert before == "before endless"
    assert failed == "failed endless TimeoutError"
    # The task itself names somebody, who is told the same.
    (words,) = redis_client.lrange(f"{app.NAME}:told", 0, -1)
    assert words.decode() == gave_up.replace("gave_up endless", too_long.id)
    assert "TimeoutError: it ran for longer than 0.3 s (" in gave_up


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_hooks_are_told_the_same_of_a_coroutine_over_its_time(
    make_app: Callable[..., Any],
    pools: Pools,
    told: Callable[[], list[str]],
    kind: str,
) -> None:
    app = make_app(more=_HOOKS)
    pools(app.queue, 1, kind).start()

    with pytest.raises(TaskFailed, match="TimeoutError"):
        app.endless_later.submit().result(timeout=30)

    wait_until(lambda: len(told()) == 3, 10, "the last note")
    assert told()[1] == "failed endless_later TimeoutError"


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
@pytest.mark.parametrize("name", ["hold", "hold_later"])
def test_hooks_are_told_by_stop_work_that_a_stop_cuts_a_task_off(
    make_app: Callable[..., Any],
    pools: Pools,
    told: Callable[[], list[str]],
    see: Any,
    kind: str,
    name: str,
) -> None:
    app = make_app(more=_HOOKS)
    pool = pools(app.queue, 1, kind)
    pool.start()
    getattr(app, name).submit(1)
    see.wait_for(1)

    pool.stop(timeout=0.0)

    wait_until(lambda: len(told()) == 2, 10, "the last note")
    assert told()[1] == f"failed {name} StopWork"


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_hooks_are_told_once_of_a_task_that_cannot_be_stopped(
    make_app: Callable[..., Any],
    pools: Pools,
    told: Callable[[], list[str]],
    see: Any,
    clock: Any,
    kind: str,
) -> None:
    app = make_app(more=_HOOKS)
    pool = pools(app.queue, 1, kind, clock=clock)
    pool.start()
    app.deaf.submit()
    wait_until(lambda: pool.stats().running, 10, "it to run")

    def is_given_up() -> bool:
        clock.ahead += supervisor.GRACE_SECONDS / 50
        return pool.stats().zombies == 1

    wait_until(is_given_up, 20, "it to be given up")
    gave_up = ["before deaf", "gave_up deaf TimeoutError"]
    wait_until(lambda: told() == gave_up, 10, "the note")

    see.wake()
    wait_until(lambda: len(told()) > 2, 10, "its end")
    pool.stop()
    *first, last = told()
    assert first == gave_up
    assert last.split()[0] in ("after", "failed")
