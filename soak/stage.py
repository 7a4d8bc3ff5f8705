"""The servers of a soak, each behind a proxy, and what can happen to them.

Clients, replicas and Sentinels know a server by the address of its proxy, so a fault of
the network meets all of them. Everything is on disk before it is acknowledged, so a
single server loses nothing when it is killed.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from workstealing.testing import Server, wait_until

__all__ = ("STAGES", "Cluster", "Sentinel", "Single", "Stage")

_PROXY = Path(__file__).parents[1] / "tests" / "faults" / "proxy.py"
_HOST = "127.0.0.1"
_SLOTS = 16_384
_READY = 60.0
# Within what time a Sentinel has another primary, or has given up.
_GIVEN_UP = 15.0
# Until the Sentinel has demoted a primary that it took for dead, and that is back.
_DEMOTION = 20.0
_DURABLE: dict[str, object] = {
    "appendonly": "yes",
    "appendfsync": "always",
    "auto_aof_rewrite_percentage": 0,
    "repl_diskless_sync_delay": 0,
    "repl_timeout": 5,
    "repl_ping_replica_period": 1,
}


class Stage:
    """Servers and proxies that start and stop together."""

    replicas = 0
    """How many must have a task before it counts."""
    shards = 1
    """Of the queue."""
    seconds_without_replica = 0.0
    """For how long there may be none, so that a worker cannot end."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.servers: list[Server] = []
        self.proxies: list[Any] = []
        self.failovers: list[tuple[float, float]] = []
        """From when to when a primary took writes that were lost with it."""

    @property
    def url(self) -> str:
        """What the fleet connects to."""
        raise NotImplementedError

    def start(self) -> None:
        """Start all, and wait until they work together."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop all."""
        self._stack.close()

    def recover(self) -> None:
        """Wait until all servers work together again."""

    def primary(self) -> int:
        """Return the index of the server that has the queue now."""
        return 0

    def primaries(self) -> list[int]:
        """Return the indices of all servers that have keys of their own."""
        return [self.primary()]

    def ask(self, index: int, *words: str | int) -> Any:
        """Send a command to a server, past its proxy."""
        url = self.servers[index].url
        with Redis.from_url(url, decode_responses=True, socket_timeout=5) as client:
            return client.execute_command(*words)

    def ask_primary(self, *words: str | int) -> Any:
        """Send a command to the server that has the queue."""
        return self.ask(self.primary(), *words)

    def was_cut_off(self, began: float) -> None:
        """Hear that a server could not be reached from then until now."""

    def hang(self, seconds: float) -> None:
        """Let the primary answer nobody for a while."""
        pid = self.servers[self.primary()].pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)

    @contextmanager
    def _failing_over(self) -> Iterator[None]:
        began = time.time()
        try:
            yield
        finally:
            self.failovers.append((began, time.time()))

    def _add(self, **options: object) -> Server:
        proxy = _load_proxy()()
        self._stack.callback(proxy.close)
        server = Server(tcp=True, **_DURABLE, **self._named(proxy), **options)
        self._stack.callback(server.stop)
        server.start()
        proxy.lead_to(server.port)
        self.servers.append(server)
        self.proxies.append(proxy)
        return server

    def _named(self, proxy: Any) -> dict[str, object]:
        """Return the options that tell others the address of the proxy."""
        return {}


class Single(Stage):
    """One server."""

    @property
    def url(self) -> str:
        """What the fleet connects to."""
        return str(self.proxies[0].url)

    def start(self) -> None:
        """Start it."""
        self._add()

    def restart(self, seconds: float) -> None:
        """Shut it down, and start it again."""
        self.servers[0].restart()

    def crash(self, seconds: float) -> None:
        """Kill it, and start it again after a while."""
        self.servers[0].kill()
        time.sleep(seconds)
        self.servers[0].start()

    def fill(self, seconds: float) -> None:
        """Let it have no memory left for a while."""
        self.ask(0, "CONFIG", "SET", "maxmemory", 1)
        time.sleep(seconds)
        self.ask(0, "CONFIG", "SET", "maxmemory", 0)

    def turn_read_only(self, seconds: float) -> None:
        """Let it be a replica of nobody for a while."""
        self.ask(0, "REPLICAOF", _HOST, 1)
        time.sleep(seconds)
        self.ask(0, "REPLICAOF", "NO", "ONE")


class Sentinel(Stage):
    """A primary, a replica and a Sentinel; `replicas=1` lets nothing be lost.

    Not two replicas: the Sentinel may promote the one that lags, and what only the
    other has is lost. So nobody can confirm anything for some ten seconds after each
    failover, until the old primary is a replica.
    """

    replicas = 1
    seconds_without_replica = 2 * _READY

    @property
    def url(self) -> str:
        """What the fleet connects to."""
        return f"redis+sentinel://{_HOST}:{self._sentinel.port}/soak/0"

    def start(self) -> None:
        """Start all, and wait until the Sentinel knows the replica."""
        self._add()
        self._add(replicaof=f"{_HOST} {self.proxies[0].port}")
        self._sentinel = _SentinelServer(self.proxies[0].port)
        self._stack.callback(self._sentinel.stop)
        self._sentinel.start()
        wait_until(self._is_whole, _READY, "the replica to follow")
        wait_until(self._is_watched, _READY, "the Sentinel to see both")

    def recover(self) -> None:
        """Wait until there is a replica again."""
        try:
            wait_until(self._is_whole, _READY, "the replica to follow")
        except TimeoutError as error:
            facts = [self.ask(index, "INFO", "replication") for index in range(2)]
            raise TimeoutError(f"{error}: {facts}") from None

    def primary(self) -> int:
        """Return the index of the server that the Sentinel names."""
        words = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "soak")
        with Redis.from_url(self._sentinel.url, decode_responses=True) as client:
            _, port = client.execute_command(*words)
        ports = [proxy.port for proxy in self.proxies]
        return ports.index(int(port))

    def lose_primary(self, seconds: float) -> None:
        """Kill the primary; it comes back as a replica.

        Or as what it was, with all that it had, where the replica was out of reach for
        another reason, so that the Sentinel had nobody to promote.
        """
        old = self.primary()
        with self._failing_over():
            self.servers[old].kill()
        with suppress(TimeoutError):
            wait_until(lambda: self.primary() != old, _READY, "the promotion")
        time.sleep(seconds)
        self.servers[old].start()
        self._settle()

    def fail_over(self, seconds: float) -> None:
        """Ask the Sentinel for another primary.

        It says when there is no good replica just now, and gives up when the one that
        it chose does not answer, as behind a black hole.
        """
        old = self.primary()
        with (
            self._failing_over(),
            suppress(RedisError, TimeoutError),
            Redis.from_url(self._sentinel.url) as client,
        ):
            client.execute_command("SENTINEL", "FAILOVER", "soak")
            wait_until(lambda: self.primary() != old, _GIVEN_UP, "another primary")
        self._settle()

    def was_cut_off(self, began: float) -> None:
        """Expect a promotion, and the old primary to take writes until it is told."""
        self.failovers.append((began, time.time() + _DEMOTION))

    def hang(self, seconds: float) -> None:
        """Let the primary answer nobody, so that the Sentinel takes it for dead."""
        began = time.time()
        super().hang(seconds)
        self.was_cut_off(began)

    def _settle(self) -> None:
        """Give them time to find together, which other faults may keep them from."""
        with suppress(TimeoutError):
            wait_until(self._is_whole, _READY, "the old primary to follow")

    def _is_whole(self) -> bool:
        with suppress(RedisError, OSError):
            roles = [self.ask(index, "ROLE")[0] for index in range(2)]
            facts = self.ask(roles.index("master"), "INFO", "replication")
            return roles.count("master") == 1 and facts["connected_slaves"] == 1
        return False

    def _is_watched(self) -> bool:
        with Redis.from_url(self._sentinel.url, decode_responses=True) as client:
            facts: Any = client.info("sentinel")
        return int(facts["master0"]["slaves"]) == 1

    def _named(self, proxy: Any) -> dict[str, object]:
        return {"replica_announce_ip": _HOST, "replica_announce_port": proxy.port}


class Cluster(Stage):
    """Three primaries with a replica each; what a replica lacks may be lost.

    Only when a node is killed, or hangs for so long that others take it for dead: in a
    planned failover the old primary refuses writes until the new one has all of them.
    """

    shards = 3

    @property
    def url(self) -> str:
        """What the fleet connects to."""
        hosts = ",".join(f"{_HOST}:{proxy.port}" for proxy in self.proxies)
        return f"redis+cluster://{hosts}"

    def start(self) -> None:
        """Start six nodes, assign slots and replicas, and wait until all agree."""
        borders = [_SLOTS * part // 3 for part in range(4)]
        for index in range(6):
            node = self._add(cluster_enabled="yes", cluster_node_timeout=2000)
            self.ask(index, "CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            if index < 3:
                slots = range(borders[index], borders[index + 1])
                self.ask(index, "CLUSTER", "ADDSLOTS", *slots)
            if index:
                bus = node.port + 10_000
                self.ask(0, "CLUSTER", "MEET", _HOST, node.port, bus)
        wait_until(lambda: self._all_say("cluster_known_nodes:6"), _READY, "all nodes")
        for index in range(3):
            name = str(self.ask(index, "CLUSTER", "MYID"))
            follows = partial(self._follows, index + 3, name)
            wait_until(follows, _READY, "a replica")
        wait_until(lambda: self._all_say("cluster_state:ok"), _READY, "the Cluster")
        wait_until(self._has_replica, _READY, "the replica to be in step")

    def recover(self) -> None:
        """Wait until the node that has the queue has a replica again."""
        wait_until(self._has_replica, _READY, "the replica to be in step")

    def primary(self) -> int:
        """Return the index of the node that has the first shard of the queue."""
        slot = _slot_of("ws:{soak/default}:task")
        for index in range(6):
            with suppress(RedisError, OSError):
                for first, last, (_, port, *_), *_ in self.ask(
                    index, "CLUSTER", "SLOTS"
                ):
                    if first <= slot <= last:
                        return [proxy.port for proxy in self.proxies].index(port)
        raise RuntimeError("no node answers")

    def primaries(self) -> list[int]:
        """Return the indices of the nodes that have slots."""
        return [n for n in range(6) if self.ask(n, "ROLE")[0] == "master"]

    def lose_primary(self, seconds: float) -> None:
        """Kill the node that has the queue; it comes back as a replica."""
        old = self.primary()
        wait_until(self._has_replica, _READY, "the replica to be in step")
        with self._failing_over():
            self.servers[old].kill()
        wait_until(lambda: self._is_moved_from(old), _READY, "the promotion")
        time.sleep(seconds)
        self.servers[old].start()
        wait_until(self._has_replica, _READY, "the old primary to follow")

    def fail_over(self, seconds: float) -> None:
        """Let the replica of the node that has the queue take its place."""
        old = self.primary()
        name = self.ask(old, "CLUSTER", "MYID")
        nodes = [line.split() for line in self._nodes(old).splitlines()]
        ports = [proxy.port for proxy in self.proxies]
        for _, address, _, follows, *_ in nodes:
            if follows == name:
                port = int(address.partition("@")[0].rpartition(":")[2])
                self.ask(ports.index(port), "CLUSTER", "FAILOVER")
        wait_until(self._has_replica, _READY, "the old primary to follow")

    def hang(self, seconds: float) -> None:
        """Let the node that has the queue answer nobody; its replica may be promoted.

        When it goes on, it answers what it finds in its sockets before it is told.
        """
        with self._failing_over():
            super().hang(seconds)

    def _is_moved_from(self, old: int) -> bool:
        with suppress(RedisError, OSError, RuntimeError):
            return self.primary() != old
        return False

    def _has_replica(self) -> bool:
        with suppress(RedisError, OSError, RuntimeError):
            facts = self.ask_primary("INFO", "replication")
            return bool(
                facts["connected_slaves"] >= 1 and facts["slave0"]["state"] == "online"
            )
        return False

    def _follows(self, index: int, name: str) -> bool:
        with suppress(RedisError):
            return bool(self.ask(index, "CLUSTER", "REPLICATE", name))
        return False

    def _all_say(self, fact: str) -> bool:
        return all(
            fact in str(self.ask(index, "CLUSTER", "INFO")) for index in range(6)
        )

    def _nodes(self, index: int) -> str:
        return str(self.ask(index, "CLUSTER", "NODES"))

    def _named(self, proxy: Any) -> dict[str, object]:
        return {"cluster_announce_ip": _HOST, "cluster_announce_port": proxy.port}


STAGES: dict[str, type[Stage]] = {
    "single": Single,
    "sentinel": Sentinel,
    "cluster": Cluster,
}


class _SentinelServer(Server):
    """A server in Sentinel mode."""

    def __init__(self, port: int) -> None:
        super().__init__(tcp=True)
        self._watched = (
            f"sentinel monitor soak {_HOST} {port} 1\n"
            "sentinel down-after-milliseconds soak 1000\n"
            "sentinel failover-timeout soak 5000\n"
        )

    def _arguments(self) -> list[str]:
        file = self.folder / "sentinel.conf"
        if not file.exists():
            file.write_text(self._watched)
        bound = ("--port", str(self.port), "--bind", _HOST, "--dir", str(self.folder))
        return [str(file), "--sentinel", *bound]


def _slot_of(key: str) -> int:
    from redis.crc import key_slot

    return int(key_slot(key.encode()))


def _load_proxy() -> Any:
    # The folder of the tests is no package.
    spec = importlib.util.spec_from_file_location("soak_proxy", _PROXY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Proxy
