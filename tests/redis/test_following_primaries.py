"""Clients follow what Sentinels announce; here, Sentinels say what a test wants.

They go on to name the old primary, which goes on to be one: only what is announced can
lead a client to another.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis

from tests.redis.scripted_sentinel import (
    SERVICE,
    ScriptedSentinel,
    address,
    as_replica,
)
from workstealing.drivers import sentinel_connections
from workstealing.drivers.connect import connect, connect_async
from workstealing.testing import Server, wait_until

_SECONDS = 30


@pytest.fixture(autouse=True)
def nobody_watches() -> None:
    """Let threads end of clients that other tests have left to the collector."""
    gc.collect()
    wait_until(lambda: not watching(), _SECONDS, "older threads to end")


@pytest.fixture(scope="module")
def old() -> Iterator[Server]:
    with Server(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def new() -> Iterator[Server]:
    with Server(tcp=True) as server:
        yield server


@pytest.fixture
def replica(old: Server) -> Iterator[Server]:
    with Server(tcp=True, replicaof=f"127.0.0.1 {old.port}") as server:
        yield server


Make = Callable[..., ScriptedSentinel]


@pytest.fixture
def make_sentinel(old: Server) -> Iterator[Make]:
    made: list[ScriptedSentinel] = []

    def make(named: Server = old, **options: Any) -> ScriptedSentinel:
        made.append(ScriptedSentinel(named, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def sentinel(make_sentinel: Make) -> ScriptedSentinel:
    return make_sentinel()


def url(*sentinels: ScriptedSentinel) -> str:
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in sentinels)
    return f"redis+sentinel://{hosts}/{SERVICE}"


class Client:
    """A client of either kind, used from a test without asyncio."""

    def __init__(self, kind: str, url: str) -> None:
        self._loop = asyncio.new_event_loop() if kind == "asyncio" else None
        build: Any = connect if self._loop is None else connect_async
        self._client = build(url, profile="tasks")

    def port(self) -> int:
        """Return where it sends what it is asked to send."""
        return int(self._run(self._client.info("server"))["tcp_port"])

    def close(self) -> None:
        if self._loop is None:
            self._client.close()
        elif not self._loop.is_closed():
            self._run(self._client.aclose())
            self._loop.close()

    def is_at(self, server: Server) -> Callable[[], bool]:
        return lambda: self.port() == server.port

    def _run(self, answer: Any) -> Any:
        return answer if self._loop is None else self._loop.run_until_complete(answer)


@pytest.fixture(params=["sync", "asyncio"])
def open_client(request: pytest.FixtureRequest) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def open_client(
        *sentinels: ScriptedSentinel, reached: list[ScriptedSentinel] | None = None
    ) -> Client:
        made.append(Client(request.param, url(*sentinels)))
        # The first use has it followed.
        made[-1].port()
        for one in sentinels if reached is None else reached:
            if one.may_subscribe:
                wait_until(one.subscribers, _SECONDS, "the subscription")
        return made[-1]

    yield open_client
    for one in made:
        one.close()


Open = Callable[..., Client]


def watching() -> list[str]:
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name == "workstealing-sentinel"]


def times_asked_for_role(server: Server) -> int:
    # With RESP3, this client would say HELLO itself.
    with Redis.from_url(server.url, protocol=2) as client:
        return int(client.info("commandstats").get("cmdstat_hello", {}).get("calls", 0))


def announce_until_all_is_heard(sentinel: ScriptedSentinel, replica: Server) -> None:
    """Announce a promotion that does not happen, and wait for it to be looked at."""
    sentinel.announce(
        "+failover-state-wait-promotion", as_replica(replica, sentinel.named)
    )
    wait_until(lambda: times_asked_for_role(replica) > 0, _SECONDS, "a question")


@pytest.mark.parametrize("channel", ["+switch-master", "+promoted-slave"])
def test_an_announced_primary_is_used_though_the_sentinels_still_name_the_old_one(
    open_client: Open,
    sentinel: ScriptedSentinel,
    old: Server,
    new: Server,
    channel: str,
) -> None:
    client = open_client(sentinel)
    assert client.port() == old.port

    switched = f"{SERVICE} {address(old)} {address(new)}"
    is_switch = channel == "+switch-master"
    sentinel.announce(channel, switched if is_switch else as_replica(new, old))

    wait_until(client.is_at(new), _SECONDS, "the client to follow")
    assert sentinel.named is old


def test_a_replica_is_used_as_soon_as_it_is_promoted_though_that_is_not_announced_yet(
    open_client: Open, sentinel: ScriptedSentinel, old: Server, replica: Server
) -> None:
    client = open_client(sentinel)
    announce_until_all_is_heard(sentinel, replica)
    assert client.port() == old.port

    with Redis.from_url(replica.url) as promoted:
        promoted.replicaof("NO", "ONE")

    wait_until(client.is_at(replica), _SECONDS, "the client to follow")


def test_a_promotion_that_is_given_up_leads_back_to_whom_the_sentinels_name(
    open_client: Open, sentinel: ScriptedSentinel, old: Server, new: Server
) -> None:
    client = open_client(sentinel)
    sentinel.announce("+failover-state-wait-promotion", as_replica(new, old))
    wait_until(client.is_at(new), _SECONDS, "the client to follow")

    sentinel.announce(
        "-failover-abort-slave-timeout", f"master {SERVICE} {address(old)}"
    )

    wait_until(client.is_at(old), _SECONDS, "the client to return")


def test_what_is_garbage_or_of_other_services_is_ignored(
    open_client: Open,
    sentinel: ScriptedSentinel,
    old: Server,
    new: Server,
    replica: Server,
) -> None:
    client = open_client(sentinel)

    sentinel.announce("+switch-master", f"other {address(old)} {address(new)}")
    sentinel.announce("+promoted-slave", as_replica(new, old, "other"))
    for text in ("", SERVICE, f"{SERVICE} {address(old)} host port", "\x00 @ \x00"):
        for channel in ("+switch-master", "+promoted-slave", "unheard"):
            sentinel.announce(channel, text)
    announce_until_all_is_heard(sentinel, replica)

    assert client.port() == old.port


def test_any_of_the_sentinels_is_followed_and_goes_on_to_be_when_others_die(
    open_client: Open, make_sentinel: Make, old: Server, new: Server
) -> None:
    first, second = make_sentinel(), make_sentinel()
    client = open_client(first, second)
    first.stop()

    second.announce("+switch-master", f"{SERVICE} {address(old)} {address(new)}")

    wait_until(client.is_at(new), _SECONDS, "the client to follow")
    first.start()


def test_what_was_announced_while_the_sentinel_was_away_is_learnt_when_it_returns(
    open_client: Open, sentinel: ScriptedSentinel, old: Server, new: Server
) -> None:
    client = open_client(sentinel)
    sentinel.stop()
    sentinel.named = new
    assert client.port() == old.port

    sentinel.start()

    wait_until(client.is_at(new), _SECONDS, "the client to follow")


def test_a_sentinel_that_is_met_when_it_is_the_only_one_to_be_heard_is_believed(
    open_client: Open, make_sentinel: Make, new: Server
) -> None:
    first, second = make_sentinel(), make_sentinel(new)
    second.stop()
    client = open_client(first, second, reached=[first])
    first.stop()

    second.start()

    wait_until(client.is_at(new), _SECONDS, "the client to follow")
    first.start()


def test_a_sentinel_that_has_always_named_another_one_is_not_followed(
    open_client: Open, make_sentinel: Make, old: Server, new: Server, replica: Server
) -> None:
    right, cut_off = make_sentinel(), make_sentinel(new)
    client = open_client(right, cut_off)

    announce_until_all_is_heard(cut_off, replica)

    assert client.port() == old.port


def test_a_sentinel_that_returns_with_what_it_knew_long_ago_is_not_followed(
    open_client: Open, make_sentinel: Make, old: Server, replica: Server, new: Server
) -> None:
    right, restarted = make_sentinel(), make_sentinel()
    client = open_client(right, restarted)
    restarted.stop()
    restarted.named = replica
    restarted.start()

    wait_until(lambda: times_asked_for_role(replica) > 2, _SECONDS, "some questions")
    assert client.port() == old.port

    right.announce("+switch-master", f"{SERVICE} {address(old)} {address(new)}")
    wait_until(client.is_at(new), _SECONDS, "the client to follow")


def test_a_filter_of_logs_that_raises_keeps_no_client_from_following(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    open_client: Open,
    sentinel: ScriptedSentinel,
    old: Server,
    new: Server,
) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError

    log = logging.getLogger("workstealing.drivers.sentinel_watch")
    monkeypatch.setattr(log, "filters", [refuse])
    caplog.set_level(logging.INFO, log.name)
    client = open_client(sentinel)

    for primary, other in ((new, old), (old, new), (new, old)):
        switched = f"{SERVICE} {address(other)} {address(primary)}"
        sentinel.announce("+switch-master", switched)
        wait_until(client.is_at(primary), _SECONDS, "the client to follow")


def test_a_user_who_may_not_subscribe_learns_it_by_asking(
    open_client: Open, make_sentinel: Make, old: Server, new: Server
) -> None:
    sentinel = make_sentinel(may_subscribe=False)
    client = open_client(sentinel)
    wait_until(lambda: sentinel.asked, _SECONDS, "the question")
    assert client.port() == old.port

    sentinel.named = new

    wait_until(client.is_at(new), _SECONDS, "the client to follow")


def test_a_sentinel_that_falls_silent_is_connected_to_anew(
    monkeypatch: pytest.MonkeyPatch,
    open_client: Open,
    sentinel: ScriptedSentinel,
    old: Server,
    new: Server,
) -> None:
    monkeypatch.setattr(sentinel_connections, "_SUBSCRIBED_SECONDS", 0.01)
    monkeypatch.setattr(sentinel_connections, "_ANSWER_SECONDS", 0.5)
    client = open_client(sentinel)
    sentinel.is_silent = True
    before = sentinel.connections
    wait_until(lambda: sentinel.connections > before, _SECONDS, "another connection")

    sentinel.named, sentinel.is_silent = new, False

    wait_until(client.is_at(new), _SECONDS, "the client to follow")


def test_clients_share_a_thread_which_ends_with_the_last_of_them(
    open_client: Open, sentinel: ScriptedSentinel
) -> None:
    first, second = open_client(sentinel), open_client(sentinel)
    assert len(watching()) == 1

    first.close()
    assert len(watching()) == 1
    assert sentinel.subscribers()

    second.close()
    wait_until(lambda: not watching(), _SECONDS, "the thread to end")
    wait_until(lambda: not sentinel.subscribers(), _SECONDS, "the connection to go")


def test_a_client_that_is_used_after_it_was_closed_follows_again(
    sentinel: ScriptedSentinel, old: Server, new: Server
) -> None:
    client = Client("sync", url(sentinel))
    client.port()
    client.close()

    assert client.port() == old.port
    wait_until(sentinel.subscribers, _SECONDS, "the subscription")
    sentinel.announce("+switch-master", f"{SERVICE} {address(old)} {address(new)}")

    wait_until(client.is_at(new), _SECONDS, "the client to follow")
    client.close()


def test_no_thread_is_left_of_clients_that_are_forgotten(
    sentinel: ScriptedSentinel,
) -> None:
    client = connect(url(sentinel), profile="tasks")
    client.ping()
    assert watching()

    del client
    gc.collect()

    wait_until(lambda: not watching(), _SECONDS, "the thread to end")


# Nobody can close connections whose loop has ended.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_no_thread_is_left_of_an_asyncio_client_that_is_closed_in_another_loop(
    sentinel: ScriptedSentinel,
) -> None:
    client: Any = connect_async(url(sentinel), profile="tasks")
    ping, close = client.ping, client.aclose

    async def use(method: Any) -> None:
        await method()

    asyncio.run(use(ping))
    assert watching()

    with suppress(RuntimeError):
        asyncio.run(use(close))

    wait_until(lambda: not watching(), _SECONDS, "the thread to end")
    del client, ping, close
    gc.collect()


def test_closing_a_client_waits_for_no_sentinel_that_hangs(
    monkeypatch: pytest.MonkeyPatch, make_sentinel: Make, sentinel: ScriptedSentinel
) -> None:
    waits: list[float | None] = []
    join = threading.Thread.join

    def recorded(thread: threading.Thread, timeout: float | None = None) -> None:
        waits.append(timeout)
        join(thread, timeout)

    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        hosts = f"127.0.0.1:{sentinel.port},127.0.0.1:{silent.getsockname()[1]}"
        client = connect(f"redis+sentinel://{hosts}/{SERVICE}")
        client.ping()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "join", recorded)
            client.close()
            del client
            gc.collect()

    assert sum(wait or 0 for wait in waits) <= 0.05
    assert None not in waits


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_follows_by_itself_and_so_does_its_parent(
    sentinel: ScriptedSentinel, old: Server, new: Server
) -> None:
    client = Client("sync", url(sentinel))
    client.port()
    wait_until(sentinel.subscribers, _SECONDS, "the subscription")
    child = os.fork()
    if not child:
        try:
            assert watching() == []
            assert client.port() == old.port
            assert watching()
            wait_until(client.is_at(new), _SECONDS, "the client to follow")
            client.close()
            wait_until(lambda: not watching(), _SECONDS, "the thread to end")
            os._exit(0)
        finally:
            os._exit(1)

    wait_until(lambda: sentinel.subscribers() == 2, _SECONDS, "the child to listen")
    sentinel.announce("+switch-master", f"{SERVICE} {address(old)} {address(new)}")

    wait_until(client.is_at(new), _SECONDS, "the client to follow")
    assert os.waitpid(child, 0)[1] == 0
    client.close()
