"""Starts servers that belong together: a Cluster of three, or a primary with Sentinel.

All run the binary that `Server` runs, on 127.0.0.1, and end with their test process.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from workstealing.drivers.own_server import HOST, Server, wait_until

__all__ = ("ClusterOfThree", "SentinelGroup")

_SLOTS = 16_384
_READY_SECONDS = 30.0


class _ServerGroup:
    """Servers that start and stop together."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def stop(self) -> None:
        """Stop all servers."""
        self._stack.close()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _add(self, server: Server) -> Server:
        # Stopped even if its start fails, so that its folder is removed.
        self._stack.callback(server.stop)
        return server.start()


class ClusterOfThree(_ServerGroup):
    """Three primaries without replicas, which share the 16,384 slots."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self._options = {
            "cluster_enabled": "yes",
            "cluster_node_timeout": 2000,
        } | options
        self.nodes: list[Server] = []

    @property
    def url(self) -> str:
        """The URL for `connect()`."""
        return "redis+cluster://" + ",".join(f"{HOST}:{n.port}" for n in self.nodes)

    def start(self) -> ClusterOfThree:
        """Start the nodes, assign the slots, and wait until all nodes agree."""
        try:
            for _ in range(3):
                self.nodes.append(self._add(Server(tcp=True, **self._options)))
            self._join()
        except BaseException:
            self.stop()
            raise
        return self

    def __enter__(self) -> ClusterOfThree:
        return self.start()

    def _join(self) -> None:
        borders = [_SLOTS * part // 3 for part in range(4)]
        for index, node in enumerate(self.nodes):
            # Different epochs from the start: the nodes need not resolve conflicts.
            _ask(node, "CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            _ask(
                node, "CLUSTER", "ADDSLOTS", *range(borders[index], borders[index + 1])
            )
            if index:
                _ask(self.nodes[0], "CLUSTER", "MEET", HOST, node.port)
        wait_until(
            lambda: all(map(_agrees, self.nodes)), _READY_SECONDS, "cluster_state:ok"
        )


class SentinelGroup(_ServerGroup):
    """A primary, its replica, and one Sentinel with a quorum of one."""

    service = "workstealing"

    def __init__(self, *, down_after_ms: int = 1000, **options: object) -> None:
        super().__init__()
        self._down_after_ms = down_after_ms
        self._options = {"repl_diskless_sync_delay": 0} | options
        self.primary: Server
        self.replica: Server
        self.sentinel: Server

    @property
    def url(self) -> str:
        """The URL for `connect()`."""
        return f"redis+sentinel://{HOST}:{self.sentinel.port}/{self.service}/0"

    def start(self) -> SentinelGroup:
        """Start all three, and wait until the Sentinel knows the replica."""
        try:
            self.primary = self._add(Server(tcp=True, **self._options))
            following = {"replicaof": f"{HOST} {self.primary.port}"}
            self.replica = self._add(Server(tcp=True, **self._options, **following))
            wait_until(self._is_following, _READY_SECONDS, "the replica to follow")
            self.sentinel = self._add(
                _Sentinel(self.service, self.primary.port, self._down_after_ms)
            )
            wait_until(self._is_watched, _READY_SECONDS, "the Sentinel to see both")
        except BaseException:
            self.stop()
            raise
        return self

    def __enter__(self) -> SentinelGroup:
        return self.start()

    def _is_following(self) -> bool:
        facts = _ask(self.replica, "INFO", "replication")
        return bool(facts.get("master_link_status") == "up")

    def _is_watched(self) -> bool:
        state = _ask(self.sentinel, "INFO", "sentinel").get("master0", {})
        return bool(state.get("status") == "ok" and int(state.get("slaves", 0)) == 1)


class _Sentinel(Server):
    """A server in Sentinel mode, which keeps its state in its configuration file."""

    def __init__(self, service: str, port: int, down_after_ms: int) -> None:
        super().__init__(tcp=True)
        self._watched = (
            f"sentinel monitor {service} {HOST} {port} 1\n"
            f"sentinel down-after-milliseconds {service} {down_after_ms}\n"
            f"sentinel failover-timeout {service} 5000\n"
        )

    def _arguments(self) -> list[str]:
        file = Path(self.folder, "sentinel.conf")
        if not file.exists():
            file.write_text(self._watched)
        return [
            str(file),
            "--sentinel",
            *("--port", str(self.port), "--bind", HOST, "--dir", str(self.folder)),
        ]


def _agrees(node: Server) -> bool:
    facts = _ask(node, "CLUSTER INFO")
    return bool(
        facts["cluster_state"] == "ok"
        and int(facts["cluster_known_nodes"]) == 3
        and int(facts["cluster_slots_ok"]) == _SLOTS
    )


def _ask(server: Server, *parts: str | int) -> Any:
    from redis import Redis  # not at import: `workstealing.testing` is free of redis

    with Redis.from_url(server.url, decode_responses=True, socket_timeout=5) as client:
        return client.execute_command(*parts)
