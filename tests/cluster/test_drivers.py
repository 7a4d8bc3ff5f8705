"""Both drivers on a Cluster of three, and on a primary that a Sentinel watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import ResponseError

from workstealing.drivers.address import target_of
from workstealing.drivers.connect import async_driver, connect, connect_async, driver
from workstealing.errors import RedisError, RedisUnavailable
from workstealing.queue.scripts import assemble
from workstealing.queue.steps import Call, Flow, Nodes, RedisCommand
from workstealing.testing import ClusterOfThree, SentinelGroup, Server, wait_until

# Busy for longer than the client waits, but not for much longer: a client that tried
# again would get through, and be seen.
SLOW_INCREMENT = """
redis.call('INCR', KEYS[1])
-- TIME stands still in a script, and servers before 7.0 have no clock.
local clock = (rawget(_G, 'os') or {}).clock
local start = clock and clock()
while clock and clock() - start < 0.3 do end
for _ = 1, clock and 0 or 1e8 do end
"""


class Face:
    """One way to call both drivers."""

    def __init__(self, kind: str) -> None:
        self.sync = kind == "sync"
        self.client: Any = None

    def open(self, url: str, **options: Any) -> Face:
        options.setdefault("profile", "tasks")
        build: Any = connect if self.sync else connect_async
        drive: Any = driver if self.sync else async_driver
        self.client = build(url, **options)
        self._driver = drive(self.client)
        return self

    async def call(self, step: Any) -> Any:
        answer = self._driver.call(step)
        return answer if self.sync else await answer

    async def run(self, flow: Any) -> Any:
        answer = self._driver.run(flow)
        return answer if self.sync else await answer

    async def close(self) -> None:
        if self.client is not None:
            closed = self.client.close() if self.sync else self.client.aclose()
            if not self.sync:
                await closed


@pytest.fixture(params=["sync", "asyncio"])
async def face(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    face = Face(request.param)
    yield face
    await face.close()


@pytest.fixture
def opened(face: Face, redis_cluster: ClusterOfThree) -> Face:
    return face.open(redis_cluster.url)


def command(*parts: Any, node: str | None = None) -> RedisCommand[Any]:
    return RedisCommand(parts, lambda reply: reply, node)


def increment(*keys: str) -> Call[Any]:
    script = assemble("test", lambda _: "return redis.call('INCR', KEYS[1])")
    return Call(script, keys, (), lambda reply: reply)


def names() -> Flow[tuple[str, ...]]:
    return (yield Nodes())


async def test_scripts_run_where_their_key_lives(opened: Face, key_prefix: str) -> None:
    answers = [await opened.call(increment(f"{key_prefix}:{n}")) for n in range(30)]

    assert answers == [1] * 30


async def test_a_script_that_the_nodes_forgot_is_sent_again(
    opened: Face, key_prefix: str
) -> None:
    await opened.call(increment(key_prefix))
    for node in await opened.run(names()):
        await opened.call(command("SCRIPT", "FLUSH", node=node))

    assert await opened.call(increment(key_prefix)) == 2


async def test_every_primary_is_named(
    opened: Face, redis_cluster: ClusterOfThree
) -> None:
    ports = sorted(node.port for node in redis_cluster.nodes)

    assert await opened.run(names()) == tuple(f"127.0.0.1:{port}" for port in ports)


async def test_a_command_can_be_sent_to_one_node(opened: Face, key_prefix: str) -> None:
    for number in range(30):
        await opened.call(command("SET", f"{key_prefix}:{number}", "x"))

    sizes = [
        len(await opened.call(command("KEYS", f"{key_prefix}:*", node=node)))
        for node in await opened.run(names())
    ]

    assert sum(sizes) == 30
    assert all(0 < size < 30 for size in sizes)


async def test_a_node_that_left_is_not_replaced_by_another(opened: Face) -> None:
    with pytest.raises(RedisUnavailable, match=r"127\.0\.0\.1:1 is no longer"):
        await opened.call(command("DBSIZE", node="127.0.0.1:1"))


async def test_keys_of_two_slots_are_refused_but_no_reason_to_wait(
    opened: Face, key_prefix: str
) -> None:
    with pytest.raises(RedisError) as caught:
        await opened.call(increment(f"{key_prefix}:a", f"{key_prefix}:b"))

    assert not isinstance(caught.value, RedisUnavailable)


async def test_a_plain_client_of_a_cluster_is_told_what_to_write(
    face: Face, redis_cluster: ClusterOfThree, key_prefix: str
) -> None:
    plain = face.open(redis_cluster.nodes[0].url)

    told = set()
    for number in range(30):
        try:
            await plain.call(command("GET", f"{key_prefix}:{number}"))
        except RedisError as error:
            told.add("redis+cluster://" in str(error))

    assert told == {True}


async def test_a_single_server_is_no_cluster(face: Face) -> None:
    with Server(tcp=True) as server:
        url = f"redis+cluster://127.0.0.1:{server.port}"

        with pytest.raises(RedisError, match=r"Cluster mode is not enabled"):
            await face.open(url).call(command("GET", "key"))


async def test_a_cluster_that_is_not_there_is_unavailable(face: Face) -> None:
    with pytest.raises(RedisUnavailable, match=r"127\.0\.0\.1:1"):
        await face.open("redis+cluster://127.0.0.1:1").call(command("GET", "key"))


async def test_clients_of_a_cluster_are_named(
    opened: Face, redis_cluster: ClusterOfThree
) -> None:
    name = await opened.call(
        command("CLIENT", "GETNAME", node=(await opened.run(names()))[0])
    )

    assert name in (b"workstealing", "workstealing")
    assert target_of(opened.client).startswith("cluster:127.0.0.1:")


@pytest.mark.parametrize("away", [0, 2])
async def test_without_a_node_the_other_slots_are_served(face: Face, away: int) -> None:
    with ClusterOfThree(cluster_require_full_coverage="no") as cluster:
        opened = face.open(cluster.url, timeout=1)
        # redis-py would ask the first one alone for the commands.
        cluster.nodes[away].kill()

        outcomes = []
        for number in range(40):
            try:
                outcomes.append(await opened.call(increment(f"key:{number}")))
            except RedisUnavailable:
                outcomes.append("unavailable")

        assert 1 in outcomes
        assert set(outcomes) == {1, "unavailable"}


async def test_slots_without_a_node_leave_the_others_alone(face: Face) -> None:
    with ClusterOfThree(cluster_require_full_coverage="no") as cluster:
        for node in cluster.nodes:
            with connect(node.url, profile="tasks") as admin:
                admin.execute_command("CLUSTER", "DELSLOTS", *range(100))
        opened = face.open(cluster.url)

        # The slot of this key is 12,182.
        assert await opened.call(increment("foo")) == 1


async def test_a_script_whose_reply_is_late_is_not_sent_twice(
    face: Face, redis_cluster: ClusterOfThree, key_prefix: str
) -> None:
    slow = assemble("slow", lambda _: SLOW_INCREMENT)
    opened = face.open(redis_cluster.url, timeout=0.2)
    await opened.call(command("GET", key_prefix))

    with pytest.raises(RedisUnavailable):
        await opened.call(Call(slow, (key_prefix,), (), bool))

    with connect(redis_cluster.url, profile="tasks") as other:
        assert other.get(key_prefix) == b"1"


@pytest.mark.parametrize("how", ["half moved", "not served"])
def test_a_slot_that_is_on_its_way_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    slept: list[float] = []
    stand_in = SimpleNamespace(**{**vars(time), "sleep": slept.append})
    monkeypatch.setattr("redis.cluster.time", stand_in)
    with ClusterOfThree() as cluster, connect(cluster.url) as client:
        drive = driver(client)
        drive.call(increment("{foo}a"))
        # The slot of these keys is 12,182, of the last node.
        with (
            connect(cluster.nodes[0].url, profile="tasks") as to,
            connect(cluster.nodes[2].url, profile="tasks") as source,
        ):
            if how == "half moved":
                other = to.execute_command("CLUSTER MYID")
                source.execute_command("CLUSTER SETSLOT", 12182, "MIGRATING", other)
            else:
                source.execute_command("CLUSTER DELSLOTS", 12182)

            with pytest.raises(RedisUnavailable):
                drive.call(increment("{foo}a", "{foo}b"))

    assert slept == []


@pytest.mark.parametrize("build", [connect, connect_async])
def test_all_sentinels_together_have_the_time_of_one_server(build: Any) -> None:
    client = build("redis+sentinel://one,two,three,four/service", timeout=0.2)

    asked = client.connection_pool.sentinel_manager.sentinels
    settings = [one.connection_pool.connection_kwargs for one in asked]
    for kind in ("socket_timeout", "socket_connect_timeout"):
        assert sum(one[kind] for one in settings) == pytest.approx(0.2)


async def test_sentinels_name_the_primary(
    face: Face, redis_sentinel: SentinelGroup, key_prefix: str
) -> None:
    opened = face.open(redis_sentinel.url)

    await opened.call(command("SET", key_prefix, "1"))

    with connect(redis_sentinel.primary.url, profile="tasks") as primary:
        assert primary.get(key_prefix) == b"1"
        assert [c["name"] for c in primary.client_list()].count("workstealing") >= 2


async def test_sentinels_may_ask_for_a_user_and_a_password_of_their_own(
    face: Face,
) -> None:
    with SentinelGroup() as group:
        with connect(group.sentinel.url, profile="tasks") as admin:
            admin.execute_command("ACL", "SETUSER", "ann", "on", ">pw?", "+@all", "&*")
            admin.execute_command("ACL", "SETUSER", "default", "off")
        login = "sentinel_username=ann&sentinel_password=pw%3F"
        opened = face.open(f"{group.url}?{login}")

        assert await opened.call(command("SET", "key", "1"))
        with connect(f"{group.sentinel.url}?username=ann&password=pw%3F") as admin:

            def follows() -> bool:
                return any(int(one["sub"]) for one in admin.client_list())

            wait_until(follows, 30, "the thread that follows to log in, too")
        stranger = Face("sync" if face.sync else "asyncio").open(group.url)
        with pytest.raises(RedisUnavailable, match=r"write \?sentinel_username="):
            await stranger.call(command("GET", "key"))
        await stranger.close()


async def test_a_silent_sentinel_is_passed_over(
    face: Face, redis_sentinel: SentinelGroup
) -> None:
    url = redis_sentinel.url.replace("://", "://127.0.0.1:1,")

    assert await face.open(url).call(command("PING"))


async def test_a_service_that_no_sentinel_knows_is_unavailable(
    face: Face, redis_sentinel: SentinelGroup
) -> None:
    url = redis_sentinel.url.replace(redis_sentinel.service, "unheard")

    with pytest.raises(RedisUnavailable, match="unheard"):
        await face.open(url).call(command("PING"))


async def test_closing_a_client_closes_its_sentinels(
    face: Face, redis_sentinel: SentinelGroup
) -> None:
    opened = face.open(redis_sentinel.url, name=f"closing-{id(face)}")
    await opened.call(command("PING"))

    def seen() -> int:
        with connect(redis_sentinel.sentinel.url, profile="tasks") as watcher:
            names = [client["name"] for client in watcher.client_list()]
        return names.count(f"closing-{id(face)}")

    assert seen() >= 1

    await face.close()

    await asyncio.to_thread(wait_until, lambda: seen() == 0, 10, "the connection to go")


async def test_after_a_failover_the_new_primary_is_used(face: Face) -> None:
    with SentinelGroup(down_after_ms=300) as group:
        opened = face.open(group.url, timeout=20)
        await opened.call(command("SET", "key", "before"))
        await opened.call(command("WAIT", 1, 5000))
        group.primary.kill()

        with pytest.raises(RedisUnavailable):
            await opened.call(command("SET", "key", "between"))
        await asyncio.to_thread(
            wait_until,
            lambda: _is_primary(group) and _is_known(group),
            30,
            "the failover",
        )
        with connect(group.replica.url, profile="tasks") as replica:
            assert await opened.call(command("GET", "key")) == b"before"
            await opened.call(command("SET", "key", "after"))

            assert replica.get("key") == b"after"


async def test_a_planned_failover_is_followed_before_the_old_primary_is_demoted(
    face: Face,
) -> None:
    with SentinelGroup() as group:
        opened = face.open(group.url)
        await opened.call(command("SET", "key", "before"))
        with (
            connect(group.primary.url, profile="tasks") as old,
            connect(group.replica.url, profile="tasks") as new,
            connect(group.sentinel.url, profile="tasks") as sentinel,
        ):
            # So it is never demoted, and goes on to take writes.
            old.execute_command("ACL SETUSER default -slaveof -replicaof")

            def has_begun() -> bool:
                # Sentinel promotes none before it has heard enough of the replica.
                with suppress(ResponseError):
                    return bool(
                        sentinel.execute_command("SENTINEL FAILOVER", group.service)
                    )
                return False

            await asyncio.to_thread(wait_until, has_begun, 30, "the failover to begin")

            await asyncio.to_thread(
                wait_until, lambda: _is_primary(group), 30, "the failover"
            )

            async def has_moved() -> bool:
                await opened.call(command("SET", "key", "after"))
                with suppress(NotConnected):
                    return bool(await asyncio.to_thread(new.get, "key") == b"after")
                return False

            while not await has_moved():
                pass
            old.set("key", "only here")
            # None of its connections leads to the old one any more.
            answers = [await opened.call(command("GET", "key")) for _ in range(3)]
            assert answers == [b"after"] * 3


# As docs/production.md advises; it may not ask for a role by ROLE.
RIGHTS = (
    "on >pw resetkeys ~* resetchannels &* +@all -@admin -@dangerous +client|setname"
)


@pytest.mark.parametrize("protocol", [2, 3])
async def test_a_server_that_was_demoted_is_not_asked_for_anything(
    face: Face, protocol: int
) -> None:
    with SentinelGroup() as group:
        for server in (group.primary, group.replica):
            with connect(server.url, profile="tasks") as admin:
                admin.execute_command("ACL", "SETUSER", "app", *RIGHTS.split())
        url = group.url.replace("://", "://app:pw@")
        opened = face.open(f"{url}?protocol={protocol}")
        await opened.call(command("SET", "key", "before"))
        with connect(group.primary.url, profile="tasks") as primary:
            # The Sentinel goes on to name it for some seconds.
            primary.replicaof("127.0.0.1", group.replica.port)
            primary.client_kill_filter(_type="normal", skipme=True)
        for _ in range(2):
            with suppress(RedisUnavailable):
                assert await opened.call(command("GET", "key")) != b"before"


def _is_primary(group: SentinelGroup) -> bool:
    # Sentinel ends the connections of a replica that it promotes.
    with connect(group.replica.url, profile="tasks") as replica, suppress(NotConnected):
        return bool(replica.role()[0] == b"master")
    return False


def _is_known(group: SentinelGroup) -> bool:
    with connect(group.sentinel.url, profile="tasks") as sentinel:
        state = sentinel.sentinel_masters()[group.service]
    return bool(state["port"] == group.replica.port)
