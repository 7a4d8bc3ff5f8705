"""Looking at a queue in a Cluster: each look stays in the slot of the queue."""

from __future__ import annotations

from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import RedisCluster

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.inspecting import AsyncInspector, Inspector
from workstealing.tasks.outcome import State


def test_a_queue_in_a_cluster_is_looked_at_like_any_other(
    cluster_client: RedisCluster, key_prefix: str
) -> None:
    queue = TaskQueue(key_prefix, cluster_client)
    inspector = Inspector(queue)

    @queue.task(name="echo")
    def echo(text: str) -> str:
        return text

    echo.options(id="done").submit("hi")
    Worker(queue, pool="pool").run(until_empty=True)
    echo.options(id="waiting").submit("hi")
    echo.options(id="later").submit_in(100, "hi")

    seen = inspector.stat()
    assert (seen.waiting, seen.delayed, seen.outcomes) == (1, 1, 1)
    assert seen.bytes is not None
    for place, task_id in (("inbox", "waiting"), ("later", "later"), ("done", "done")):
        assert [entry.id for entry in inspector.ls(place)] == [task_id]
    assert inspector.ls("running") == inspector.ls("dead") == inspector.ls("parked")
    assert inspector.why("waiting").state is State.WAITING
    assert inspector.cat("done").result == "hi"
    (run,) = inspector.tree().children
    assert [child.name for child in run.children] == [
        *("inbox", "later", "outbox", "queues"),
    ]


async def test_queues_are_found_on_every_node_of_a_cluster(
    cluster_client: RedisCluster,
    async_cluster_client: AsyncRedisCluster,
    key_prefix: str,
) -> None:
    # Enough of them that each node has some.
    queues = [TaskQueue(f"{key_prefix}-{n:02}", cluster_client) for n in range(20)]
    for queue in queues:
        queue.end_input()

    found = Inspector(queues[0]).queues()

    own = [name for name, _ in found.names if name.startswith(key_prefix)]
    assert own == [queue.name for queue in queues]
    assert found.is_all
    twin = AsyncInspector(AsyncTaskQueue(key_prefix, async_cluster_client))
    assert await twin.queues() == found
    assert Inspector(queues[0]).stat().server.startswith("cluster:")
