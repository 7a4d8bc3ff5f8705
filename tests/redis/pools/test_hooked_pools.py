"""Hooks are told in each kind of pool, and of what ends with its process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from workstealing.errors import TaskDead, TaskFailed
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]

_HOOKS = """

    from contextvars import ContextVar

    from workstealing import Middleware, NewResult, Refuse

    tenant = ContextVar("tenant", default="nobody")


    class Noting(Middleware):
        def before(self, task, context):
            notes.rpush(f"{NAME}:told", f"before {task.name}")
            if task.name == "who":
                raise Refuse("nobody asks")

        async def after(self, task, context, result):
            notes.rpush(f"{NAME}:told", f"after {task.name}")
            return NewResult(result + 1)

        def failed(self, task, context, error):
            notes.rpush(f"{NAME}:told", f"failed {task.name} {type(error).__name__}")

        def gave_up(self, task, context, error, reason):
            notes.rpush(f"{NAME}:told", f"gave_up {task.name}")


    queue.use(Noting())
"""


@pytest.fixture
def told(redis_client: Redis, key_prefix: str) -> Callable[[], list[str]]:
    """What the hooks have noted."""

    def read() -> list[str]:
        found = redis_client.lrange(f"{key_prefix}:told", 0, -1)
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
    with pytest.raises(TaskDead, match="nobody asks"):
        app.who.submit().result(timeout=10)

    wait_until(lambda: "gave_up who" in told(), 10, "the last note")
    assert told() == [
        *("before add", "after add"),
        *("before add_later", "after add_later"),
        *("before who", "gave_up who"),
    ]


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_hooks_are_told_of_a_task_over_its_time(
    make_app: Callable[..., Any],
    pools: Pools,
    told: Callable[[], list[str]],
    kind: str,
) -> None:
    app = make_app(more=_HOOKS)
    pools(app.queue, 1, kind).start()

    with pytest.raises(TaskFailed, match="TimeoutError"):
        app.endless.submit().result(timeout=30)

    wait_until(lambda: "gave_up endless" in told(), 10, "the last note")
    before, failed, gave_up = told()
    assert (before, gave_up) == ("before endless", "gave_up endless")
    assert failed.startswith("failed endless")
