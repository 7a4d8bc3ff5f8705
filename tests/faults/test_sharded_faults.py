"""Workers die in any shard, shards come, nodes go: nothing is lost, others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from redis.crc import key_slot

from workstealing import TaskQueue, WorkerPool
from workstealing.cli.commands import workstealing
from workstealing.client.queue_internals import internals_of
from workstealing.drivers.connect import async_driver
from workstealing.errors import RedisError
from workstealing.inspecting import Inspector
from workstealing.queue.placement import shard_of_key
from workstealing.queue.steps import RedisCommand
from workstealing.testing import ClusterOfThree, Server, wait_until

SHARDS = 4
SHARDS_OF_THREE = 8
Make = Callable[..., Any]


def done(story: Any) -> int:
    return int(story.queue.counts().stats.get("done", 0))


def test_a_worker_that_is_killed_in_any_shard_loses_nothing(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server, shards=SHARDS)
    story.pause.submit_many([(n, 0.002) for n in range(1_200)])
    for victims in range(3):
        # One worker goes from shard to shard, so it mostly dies away from home.
        victim = processes.start(story, pool=f"victim{victims}")
        wait_until(lambda: done(story) >= 250 * (victims + 1), 60, "some to be done")  # noqa: B023
        victim.kill()
        victim.wait()
    processes.start(story, pool="last")
    story.queue.wait(timeout=60)

    runs = Counter(story.runs())
    assert set(runs) == set(range(1_200))
    assert story.queue.counts().stats["done"] == 1_200
    # As many as last 50 ms, and the one that ran, of each victim.
    assert sum(runs.values()) - 1_200 <= 3 * 51


def test_shards_are_added_under_load_and_nothing_is_lost(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server, shards=2)
    processes.start(story, pool="a")
    processes.start(story, pool="b")
    story.pause.submit_many([(n, 0.002) for n in range(1_000)])
    wait_until(lambda: done(story) >= 100, 60, "some to be done")

    grown = make_story(redis_server, shards=8)
    grown.pause.submit_many([(n, 0.002) for n in range(1_000, 2_000)])
    grown.queue.wait(timeout=90)

    runs = Counter(grown.runs())
    assert set(runs) == set(range(2_000))
    assert max(runs.values()) == 1
    assert done(grown) == done(story) == 2_000
    assert len(internals_of(grown.queue).shards.all) == 8


@pytest.fixture
def open_cluster() -> Any:
    """A Cluster of three that goes on when some of its slots are away."""
    with ClusterOfThree(cluster_require_full_coverage="no") as cluster:
        yield cluster


def test_while_a_node_is_away_an_operator_sees_the_shards_of_the_others(
    open_cluster: ClusterOfThree,
) -> None:
    url = f"{open_cluster.url}?socket_timeout=0.5&socket_connect_timeout=0.5"
    with TaskQueue("letters", url, shards=SHARDS_OF_THREE) as queue:
        send = queue.task(name="send")(lambda n: n)
        send.submit_many([(n,) for n in range(800)])
        client: Any = internals_of(queue).driver.client
        # An operator who only has the name must be able to ask the first shard.
        of_shard = [
            client.get_node_from_key(keys.task).port
            for keys in internals_of(queue).shards.all
        ]
        away = next(one for one in open_cluster.nodes if one.port != of_shard[0])
        lost = [shard for shard, port in enumerate(of_shard) if port == away.port]
        pool = WorkerPool(queue, 1, "threads", name="mail")
        queue.pause()
        with pool:
            wait_until(lambda: Inspector(queue).stat().living == 1, 30, "the worker")
            away.kill()
            wait_until(lambda: Inspector(queue).stat().living == 1, 60, "its return")

            stat = Inspector(queue).stat()
            assert list(stat.unreachable) == lost
            assert len(stat.shards) == SHARDS_OF_THREE - len(lost)
            assert 0 < stat.unfinished < 800
            where = ["--queue", "letters", "--redis", url]
            seen = CliRunner().invoke(workstealing, ["queue", "stat", *where])
            named = f"{len(lost)} of 8 shards cannot be reached: "
            assert named in " ".join(seen.stdout.split())
            watched = CliRunner().invoke(
                workstealing, ["top", "--once", "--interval", "0.1", *where]
            )
            assert (watched.exit_code, named in watched.stdout) == (0, True)
            assert Inspector(queue).events().releases, "of the shard of the worker"
            checked = CliRunner().invoke(
                workstealing, ["worker", "--check", *where, "--pool", "mail"]
            )
            assert (checked.exit_code, checked.stdout) == (0, "alive: mail.0\n")
            away.start()


@pytest.mark.timeout(120)
def test_while_a_node_is_away_the_shards_of_the_others_go_on(
    open_cluster: ClusterOfThree,
    redis_server: Server,
    make_story: Make,
    processes: Any,
) -> None:
    # Each look at a node that hangs takes as long as the client waits: 5 s by default.
    url = f"{open_cluster.url}?socket_timeout=0.5&socket_connect_timeout=0.5"
    story = make_story(redis_server, url=url, shards=SHARDS_OF_THREE)
    processes.start(story, pool="a")
    processes.start(story, pool="b")
    away = open_cluster.nodes[1]
    client: Any = internals_of(story.queue).driver.client
    shards = internals_of(story.queue).shards.all
    is_away = [client.get_node_from_key(keys.task).port == away.port for keys in shards]
    assert any(is_away)
    assert not all(is_away)
    keys_of = {shard_of_key(f"key-{n}", SHARDS_OF_THREE): f"key-{n}" for n in range(99)}

    away.pause()
    try:
        numbers = set()
        for shard, key in keys_of.items():
            if not is_away[shard]:
                story.note.options(shard_key=key).submit(shard)
                numbers.add(shard)
        wait_until(lambda: numbers <= set(story.runs()), 90, "the others to be served")
        lost = keys_of[is_away.index(True)]
        with pytest.raises(RedisError):
            story.note.options(shard_key=lost).submit(99)
    finally:
        away.resume()
    story.queue.wait(timeout=60)


async def test_an_asyncio_client_that_starts_while_a_node_is_away_asks_the_others(
    open_cluster: ClusterOfThree,
) -> None:
    # It takes the node of the first slots for what can be asked of any node.
    open_cluster.nodes[0].kill()
    key = next(key for key in map(str, range(100)) if key_slot(key.encode()) > 6000)
    drives = async_driver(open_cluster.url)

    found = await drives.call(RedisCommand(("EXISTS", key), int))

    assert found == 0
    await drives.client.aclose()
