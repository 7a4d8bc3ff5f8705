"""Promise 1, where many servers hang: together they have the time of one.

No time is measured: what counts is how long a connection would wait, and how many
connections silent sockets were asked for.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from redis.connection import Connection
from redis.exceptions import RedisClusterException

from workstealing import Duty, Recruiter, TaskQueue, WorkStealer, connect
from workstealing.drivers.connect import async_driver, driver
from workstealing.drivers.connection import timeout_of
from workstealing.errors import RedisUnavailable
from workstealing.jobs import CounterFlush
from workstealing.queue.steps import RedisCommand
from workstealing.testing import ClusterOfThree, wait_until

FORMS = {"cluster": "redis+cluster://{}", "sentinel": "redis+sentinel://{}/main"}
SECONDS = 0.05


class SilentServers:
    """Accept connections, and never answer."""

    def __init__(self, stack: ExitStack, number: int) -> None:
        self._listeners = [
            stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
            for _ in range(number)
        ]
        for one in self._listeners:
            one.setblocking(False)

    @property
    def hosts(self) -> str:
        ports = (one.getsockname()[1] for one in self._listeners)
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    def new_connections(self) -> list[int]:
        """Return how many each has been asked for since the last time."""
        return [self._accepted(one) for one in self._listeners]

    @staticmethod
    def _accepted(listener: socket.socket) -> int:
        number = 0
        while True:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                return number
            number += 1


@pytest.fixture
def silent() -> Iterator[Callable[[int], SilentServers]]:
    with ExitStack() as stack:
        yield lambda number: SilentServers(stack, number)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long each connection that the test itself opens waits for an answer.

    Nobody waits for the thread that follows the Sentinels.
    """
    seconds = list[float]()
    original: Any = Connection._connect
    caller = threading.get_ident()

    def recorded(connection: Any) -> Any:
        if threading.get_ident() == caller:
            seconds.append(connection.socket_timeout)
        return original(connection)

    monkeypatch.setattr(Connection, "_connect", recorded)
    return seconds


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [1, 3, 6])
def test_an_enlist_waits_for_all_of_them_no_longer_than_for_one(
    silent: Any, waits: list[float], form: str, number: int
) -> None:
    servers = silent(number)
    url = FORMS[form].format(servers.hosts)
    recruiter = Recruiter(share=None, breaker=None)
    counters = CounterFlush(url, "hits", lambda *_: None)
    recruiter.install(counters, "counters", rate=0.5)
    recruiter.install(WorkStealer(TaskQueue("silent", url)), "tasks", rate=0.5)
    assert waits == [], "nothing is asked while it is installed"

    # So many that each job is drawn.
    for _ in range(30):
        assert recruiter.enlist() is Duty.DISMISSED
        # A flow that has failed is closed, and its last step may be another call.
        # Sentinels are connected to by the thread that follows them, too.
        assert max(servers.new_connections()) <= (2 if form == "sentinel" else 1)
        assert sum(waits) <= SECONDS + 1e-9
        waits.clear()

    assert all(job.last_error for job in recruiter.stats().jobs.values())


@pytest.mark.parametrize("number", [3, 6])
def test_a_cluster_that_hangs_is_opened_once_for_a_call(
    silent: Any, waits: list[float], number: int
) -> None:
    servers = silent(number)
    cluster = connect(FORMS["cluster"].format(servers.hosts))

    with pytest.raises(RedisUnavailable):
        driver(cluster).call(RedisCommand(("GET", "key"), str))

    assert servers.new_connections() == [1] * number
    assert sum(waits) <= SECONDS + 1e-9


class Announced:
    """A lock that says how many threads have asked for it."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.asked = 0

    def __enter__(self) -> None:
        self.asked += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_that_open_a_cluster_at_the_same_time_wait_for_one_attempt(
    silent: Any,
) -> None:
    servers, errors = silent(1), list[str]()
    cluster: Any = connect(FORMS["cluster"].format(servers.hosts))
    lock = cluster._opening = Announced(cluster._opening)

    def call() -> None:
        try:
            cluster.get("key")
        except RedisClusterException as error:
            errors.append(str(error))

    callers = [threading.Thread(target=call) for _ in range(4)]
    with lock:
        for caller in callers:
            caller.start()
        wait_until(lambda: lock.asked == 1 + len(callers), 10, "all of them")
    for caller in callers:
        caller.join()

    assert servers.new_connections() == [1]
    assert len(errors) == 4
    assert len(set(errors)) == 1
    with pytest.raises(RedisClusterException):
        cluster.get("key")
    assert servers.new_connections() == [1], "a later caller tries again"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_child_that_is_forked_while_a_thread_opens_a_cluster_opens_it_itself(
    silent: Any,
) -> None:
    cluster: Any = connect(FORMS["cluster"].format(silent(1).hosts))
    begun, may_end = threading.Event(), threading.Event()

    def open_slowly() -> None:
        with cluster._opening:
            begun.set()
            may_end.wait(30)

    opener = threading.Thread(target=open_slowly)
    opener.start()
    assert begun.wait(10)
    child = os.fork()
    if not child:
        # Ends it, should it wait for the lock.
        signal.alarm(10)
        try:
            cluster.get("key")
        except RedisClusterException:
            os._exit(0)
        finally:
            os._exit(1)
    may_end.set()
    opener.join()

    assert os.waitpid(child, 0)[1] == 0


async def test_an_asyncio_client_opens_a_cluster_that_hangs_once_for_a_call(
    silent: Any,
) -> None:
    servers = silent(3)
    drives = async_driver(FORMS["cluster"].format(servers.hosts))

    with pytest.raises(RedisUnavailable):
        await drives.call(RedisCommand(("GET", "key"), str))

    assert servers.new_connections() == [1, 1, 1]
    await drives.client.aclose()


def test_a_cluster_that_was_opened_has_the_whole_time_for_each_command(
    redis_cluster: ClusterOfThree, waits: list[float], key_prefix: str
) -> None:
    host = redis_cluster.url.removeprefix("redis+cluster://").split(",")[0]
    url = f"redis+cluster://{host},127.0.0.1:1,127.0.0.1:2"
    client: Any = connect(url, timeout=6)
    assert client.ping()
    assert waits[0] == 2, "three hosts are named"
    waits.clear()

    for number in range(20):
        client.set(f"{key_prefix}:{number}", "1")

    assert set(waits) == {6}
    assert timeout_of(client) == 6
    client.close()
