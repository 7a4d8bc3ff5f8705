"""URLs become clients: named, quick to give up, and with the rights of their user."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing.drivers import connect as connecting
from workstealing.drivers.address import OPTIONS, target_of
from workstealing.drivers.connect import (
    async_driver,
    check_redis,
    connect,
    connect_async,
    driver,
)
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import ConfigurationError, RedisUnavailable
from workstealing.queue.steps import RedisCommand
from workstealing.testing import Server
from workstealing.testing.plugin import missing


@pytest.fixture(autouse=True)
def no_urls_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WORKSTEALING_URL", "REDIS_URL"):
        monkeypatch.delenv(variable, raising=False)


def test_the_server_sees_the_name_of_a_client(redis_server: Server) -> None:
    with connect(redis_server.url, profile="tasks", name="housekeeping") as client:
        assert client.client_getname() == "housekeeping"


def test_clients_are_called_workstealing_by_default(redis_server: Server) -> None:
    with connect(redis_server.url, profile="tasks") as client:
        assert client.client_getname() == "workstealing"


async def test_an_asyncio_client_has_a_name_too(redis_server: Server) -> None:
    client = connect_async(redis_server.url, profile="tasks", name="housekeeping")

    assert await client.client_getname() == "housekeeping"

    await client.aclose()


@pytest.mark.parametrize("build", [connect, connect_async])
@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ({}, 0.05),
        ({"profile": "side-work"}, 0.05),
        ({"profile": "tasks"}, 5.0),
        ({"timeout": 1}, 1),
        ({"profile": "tasks", "timeout": 0.5}, 0.5),
    ],
)
def test_a_profile_or_a_number_sets_the_timeouts(
    build: Any, arguments: dict[str, Any], seconds: float
) -> None:
    for url in ("redis://h/0", "redis+sentinel://h/main"):
        options = build(url, **arguments).connection_pool.connection_kwargs

        assert options["socket_timeout"] == seconds
        assert options["socket_connect_timeout"] == seconds

    options = build("unix:///s", **arguments).connection_pool.connection_kwargs
    assert options["socket_timeout"] == seconds


def test_an_option_in_the_url_wins() -> None:
    client = connect("redis://h/0?socket_timeout=2")

    assert client.connection_pool.connection_kwargs["socket_timeout"] == 2


@pytest.mark.parametrize("build", [connect, connect_async])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profile": "fast"}, "profile must be one of 'side-work', 'tasks'"),
        ({"timeout": 0}, "timeout must be above 0 seconds"),
        ({"timeout": float("inf")}, "timeout must be above 0 seconds"),
        ({"timeout": "1"}, "timeout must be seconds"),
        ({"timeout": True}, "timeout must be seconds"),
        ({"timeout": 10**5000}, "timeout must be above 0 seconds"),
        ({"timeout": 1e300}, "timeout must be above 0 seconds"),
        ({"profile": []}, "profile must be one of 'side-work', 'tasks'"),
        ({"name": "two words"}, "name must be printable ASCII without spaces"),
        ({"name": ""}, "name must be printable ASCII without spaces"),
        ({"persist": "/data"}, "persist= is for the embedded server"),
        ({"url": 6379}, "a URL such as redis://"),
        ({"url": "localhost"}, "write redis://host:6379/0"),
        ({"url": "redis://h/0?colour=red"}, "cannot set 'colour'"),
        ({"url": "redis://h/0?connection_pool=1"}, "cannot set 'connection_pool'"),
        ({"url": "redis://h/0?cache=1"}, "cannot set 'cache'"),
        ({"url": "redis://h/0?event_dispatcher=x"}, "cannot set 'event_dispatcher'"),
        ({"url": "redis://h/0?retry=5"}, "cannot set 'retry'"),
        ({"url": "redis://h/0?max_connections=-1"}, "'max_connections' .* above 0"),
        ({"url": "redis://h/0?socket_timeout=nan"}, "'socket_timeout' .* above 0"),
        ({"url": "redis://h/0?socket_timeout=1e300"}, "'socket_timeout' .* above 0"),
        ({"url": "redis://h/0?client_name=a%20b"}, "name must be printable ASCII"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    build: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build(**{"url": "redis://h/0", **arguments})


@pytest.mark.parametrize("take", [check_redis, driver, async_driver])
@pytest.mark.parametrize("client", [Redis, AsyncRedis])
def test_a_pipeline_is_not_taken_for_a_client(take: Any, client: Any) -> None:
    # It inherits from one, but would keep what it is sent, and report success.
    with pytest.raises(ConfigurationError, match="not a Pipeline"):
        take(client().pipeline())


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_every_option_of_a_url_is_taken_or_refused_with_our_error(option: str) -> None:
    for url in ("redis://h", "rediss://h", "unix:///s", "redis+sentinel://h/main"):
        for build in (connect, connect_async):
            with suppress(ConfigurationError):
                build(f"{url}?{option}=1")
    with suppress(ConfigurationError):
        connect_async(f"redis+cluster://h?{option}=1")


@pytest.mark.parametrize("persist", ["", 5, b"/data", "a\0b", "~nobody-of-that-name/x"])
def test_what_is_no_folder_is_refused(persist: Any) -> None:
    with pytest.raises(ConfigurationError, match="persist must be the path of a"):
        connect(persist=persist)


def test_our_own_variable_comes_before_the_general_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://general:1/0")
    assert target_of(connect()) == "general:1/0"

    monkeypatch.setenv("WORKSTEALING_URL", "redis://ours:2/0")
    assert target_of(connect()) == "ours:2/0"
    assert target_of(connect_async()) == "ours:2/0"


def test_an_argument_comes_before_all_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORKSTEALING_URL", "redis://ours:2/0")

    assert target_of(connect("redis://given:3/0")) == "given:3/0"


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSTEALING_URL", "")
    monkeypatch.setenv("REDIS_URL", "redis://general:1/0")

    assert target_of(connect()) == "general:1/0"


def test_without_any_url_the_embedded_server_is_used(
    monkeypatch: pytest.MonkeyPatch, redis_server: Server
) -> None:
    wanted = []

    def stands_in(persist: object) -> str:
        wanted.append(persist)
        return redis_server.url

    monkeypatch.setattr(connecting, "embedded", stands_in)

    with connect(profile="tasks", persist="/data") as client:
        assert client.ping()
    assert wanted == ["/data"]


def test_user_password_and_database_are_those_of_the_url() -> None:
    with Server(tcp=True, requirepass="p@ss") as server:
        url = server.url.replace("://", "://default:p%40ss@").replace("/0", "/3")
        with connect(url, profile="tasks") as client:
            client.set("key", "value")

            assert client.client_info()["db"] == 3
            assert client.acl_whoami() == "default"


async def test_asyncio_clients_log_in_too() -> None:
    with Server(tcp=True, requirepass="p@ss") as server:
        url = server.url.replace("://", "://:p%40ss@").replace("/0", "/3")
        client = connect_async(url, profile="tasks")

        assert (await client.client_info())["db"] == 3

        await client.aclose()


def test_a_certificate_that_the_url_names_is_trusted(tls_front: TlsFront) -> None:
    with connect(tls_front.url, profile="tasks") as client:
        assert client.ping()


async def test_an_asyncio_client_speaks_tls_too(tls_front: TlsFront) -> None:
    client = connect_async(tls_front.url, profile="tasks")

    assert await client.ping()

    await client.aclose()


def test_a_certificate_of_a_stranger_is_refused(tls_front: TlsFront) -> None:
    url = tls_front.url.partition("?")[0]
    with (
        connect(url, profile="tasks") as client,
        pytest.raises(RedisUnavailable, match="certificate"),
    ):
        Driver(client).call(RedisCommand(("PING",), bool))


@pytest.fixture(scope="module")
def tls_front(
    redis_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsFront]:
    """TLS before the server, whose binary may have been built without it."""
    if shutil.which("openssl") is None:
        missing("openssl is needed to make a certificate")
    front = TlsFront(redis_server, tmp_path_factory.mktemp("tls"))
    yield front
    front.close()


class TlsFront:
    """Takes TLS connections and passes what they say to a server, and back."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-nodes", "-days", "1"),
                *("-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"),
                *("-newkey", "rsa:2048", "-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(plain,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        with plain, socket.socket(socket.AF_UNIX) as behind:
            try:
                client = self._context.wrap_socket(plain, server_side=True)
            except OSError:
                return
            with client:
                behind.connect(self._server.address)
                # Redis answers each message, so that one thread is enough here.
                while heard := client.recv(65536):
                    behind.sendall(heard)
                    client.sendall(behind.recv(65536))


@pytest.mark.parametrize("variable", ["WORKSTEALING_URL", "REDIS_URL"])
def test_an_error_in_a_url_names_the_variable_that_it_came_from(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "localhost:6379")

    with pytest.raises(ConfigurationError, match=f"variable {variable}: a Redis URL"):
        connect()
    with pytest.raises(ConfigurationError, match=r"^a Redis URL starts"):
        connect("localhost:6379")
