"""What is lost with a server: tasks that were accepted and are gone afterwards.

Run `python -m benchmarks.losses`; the table in docs/production.md is its output. Four
threads submit for some seconds while the fault happens. A ledger outside of Redis has
what was accepted, and is compared with the server that is left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from workstealing import TaskQueue, connect
from workstealing.client.queue_internals import internals_of
from workstealing.errors import RedisError
from workstealing.testing import SentinelGroup, Server, wait_until

__all__ = ()

_THREADS = 4
_SECONDS = 3.0


class _Ledger:
    """Submits until it is told to stop, and notes what was accepted."""

    def __init__(self, url: str, replicas: int) -> None:
        self.queue = TaskQueue("losses", url, replicas=replicas)
        self._task = self.queue.task(name="noop")(_noop)
        self._is_over = Event()
        self.accepted: list[str] = []
        self.refused = 0
        self._threads = [Thread(target=self._submit) for _ in range(_THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def lost(self, url: str) -> int:
        keys = internals_of(self.queue).keys
        with connect(url, profile="tasks") as client:
            kept = {one.decode() for one in client.hkeys(keys.task)}
        return len(set(self.accepted) - kept)

    def _submit(self) -> None:
        while not self._is_over.is_set():
            try:
                self.accepted.append(self._task.submit(1).id)
            except RedisError:
                self.refused += 1
                time.sleep(0.01)


def _noop(number: int) -> int:
    return number


def _killed(group: SentinelGroup) -> None:
    group.primary.kill()


def _planned(group: SentinelGroup, *how: str) -> None:
    with connect(group.sentinel.url, profile="tasks") as sentinel:

        def has_begun() -> bool:
            with suppress(Exception):
                return bool(
                    sentinel.execute_command("SENTINEL FAILOVER", group.service, *how)
                )
            return False

        wait_until(has_begun, 30, "the failover to begin")


def _coordinated(group: SentinelGroup) -> None:
    """Have the old primary wait with writes until the replica has all: Valkey 9.1."""
    _planned(group, "COORDINATED")


def _cut_off(group: SentinelGroup) -> None:
    """Have the primary work on without its replica, which is then promoted."""
    with connect(group.primary.url, profile="tasks") as primary:
        primary.execute_command("ACL SETUSER default -psync -replconf -sync")
        primary.client_kill_filter(_type="replica")
    time.sleep(_SECONDS)
    group.primary.kill()


def _measure_group(
    fault: Callable[[SentinelGroup], None],
    replicas: int,
    down_after_ms: int = 1000,
    **options: object,
) -> tuple[int, int, int]:
    with SentinelGroup(down_after_ms=down_after_ms, **options) as group:
        ledger = _Ledger(group.url, replicas)
        time.sleep(_SECONDS)
        fault(group)

        def is_promoted() -> bool:
            with (
                suppress(Exception),
                connect(group.replica.url, profile="tasks") as one,
            ):
                role: Any = one.role()
                return bool(role[0] == b"master")
            return False

        wait_until(is_promoted, 60, "the failover")
        # The old primary is demoted some ten seconds later.
        time.sleep(15.0)
        ledger.stop()
        lost = ledger.lost(group.replica.url)
        ledger.queue.close()
        return len(ledger.accepted), ledger.refused, lost


def _measure_single(**options: object) -> tuple[int, int, int]:
    with Server(tcp=True, **options) as server:
        ledger = _Ledger(server.url, 0)
        time.sleep(_SECONDS)
        server.kill()
        ledger.stop()
        server.restart()
        lost = ledger.lost(server.url)
        ledger.queue.close()
        return len(ledger.accepted), ledger.refused, lost


def _main() -> None:
    cautious = {"min_replicas_to_write": 1, "min_replicas_max_lag": 2}
    for name, fault in (
        ("killed", _killed),
        ("planned failover", _planned),
        ("cut off for 3 s, then killed", _cut_off),
    ):
        for how, replicas, options in (
            ("nothing set", 0, {}),
            ("min-replicas-to-write 1", 0, cautious),
            ("replicas=1", 1, {}),
        ):
            _show(name, how, _measure_group(fault, replicas, **options))
    for how, single in (
        ("snapshots", {}),
        ("AOF everysec", {"appendonly": "yes", "appendfsync": "everysec"}),
        ("AOF always", {"appendonly": "yes", "appendfsync": "always"}),
    ):
        _show("killed and restarted", how, _measure_single(**single))
    # Within a second, a Sentinel would take the new primary for dead.
    seen = _measure_group(_coordinated, 0, down_after_ms=5000)
    _show("planned failover, coordinated", "nothing set", seen)


def _show(fault: str, how: str, seen: tuple[int, int, int]) -> None:
    accepted, refused, lost = seen
    sys.stdout.write(f"| {fault} | {how} | {accepted:,} | {refused:,} | {lost:,} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main()
