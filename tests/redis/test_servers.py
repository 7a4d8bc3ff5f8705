"""The servers and fixtures that `workstealing.testing` gives to users."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from workstealing.drivers.embedded_keeper import answers
from workstealing.testing import Server, ServerStartError, wait_until

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("tcp", [False, True])
def test_a_server_answers_at_its_url(tcp: bool) -> None:
    with Server(tcp=tcp) as server, Redis.from_url(server.url) as client:
        assert client.ping()


def test_keywords_are_options_of_the_server() -> None:
    with (
        Server(maxmemory_policy="volatile-lru", maxmemory="7mb") as server,
        Redis.from_url(server.url) as client,
    ):
        options = client.config_get("maxmemory*")

    assert options["maxmemory-policy"] == "volatile-lru"
    assert options["maxmemory"] == str(7 << 20)


def test_nothing_is_left_of_a_stopped_server() -> None:
    server = Server().start()
    pid = server.pid

    server.stop()
    server.stop()

    assert not server.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nobody_takes_the_port_of_a_killed_server_until_it_is_restarted() -> None:
    with Server(tcp=True) as server, socket.socket() as other:
        server.kill()
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        with pytest.raises(OSError, match="in use"):
            other.bind(server.address)
        assert not answers(server.address)

        server.restart()
        assert answers(server.address)


def test_a_restarted_server_keeps_its_address_and_its_files() -> None:
    with Server(tcp=True, appendonly="yes", appendfsync="always") as server:
        with Redis.from_url(server.url) as client:
            client.set("key", "value")
        url = server.url

        server.restart()

        assert server.url == url
        with Redis.from_url(url) as client:
            assert client.get("key") == b"value"


def test_a_killed_server_can_be_started_again() -> None:
    with Server() as server:
        server.kill()
        assert not answers(server.address)

        server.restart()

        assert answers(server.address)


def test_a_paused_server_is_silent_until_it_resumes() -> None:
    with Server() as server:
        server.pause()
        assert not answers(server.address, timeout=0.1)

        server.resume()

        assert answers(server.address)


def test_a_paused_server_can_be_stopped() -> None:
    with Server() as server:
        server.pause()


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(ServerStartError, match="maxmemory"):
        Server(maxmemory="plenty").start()


def test_a_server_dies_with_a_killed_test_process() -> None:
    program = """
import sys
from workstealing.testing import Server
server = Server(tcp=True).start()
print(server.port, server.folder, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port, folder = process.stdout.readline().split()
        assert answers(("127.0.0.1", int(port)))

        process.send_signal(signal.SIGKILL)

    wait_until(lambda: not Path(folder).exists(), 10, "the folder to go")
    wait_until(lambda: not answers(("127.0.0.1", int(port))), 10, "the server to die")


@pytest.mark.parametrize(("variable", "outcome"), [("", "skipped"), ("1", "error")])
@pytest.mark.parametrize("fixture", ["redis_server", "fake_redis"])
def test_what_is_missing_skips_here_and_fails_in_ci(
    tmp_path: Path, fixture: str, variable: str, outcome: str
) -> None:
    (tmp_path / "conftest.py").write_text(
        "from workstealing.drivers import embedded\n"
        "from workstealing.testing import plugin\n"
        "embedded.find_spec = plugin.find_spec = lambda name: None\n"
        'pytest_plugins = ["workstealing.testing.plugin"]\n'
    )
    (tmp_path / "test_it.py").write_text(f"def test_it({fixture}): pass\n")
    environment = {"PATH": "", "PYTHONPATH": str(REPOSITORY), "CI": variable}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"1 {outcome}" in done.stdout
    assert (done.returncode == 0) == (outcome == "skipped")


def test_keys_of_a_test_are_removed_after_it(
    redis_server: Server, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        'pytest_plugins = ["workstealing.testing.plugin"]\n'
    )
    (tmp_path / "test_it.py").write_text(
        "def test_first(redis_client, key_prefix):\n"
        "    redis_client.set(key_prefix, 1)\n"
        "    redis_client.set('{' + key_prefix + '}:beside', 1)\n"
        "    redis_client.set('of-somebody-else', 1)\n"
        "def test_second(redis_client):\n"
        "    assert redis_client.keys('*') == [b'of-somebody-else']\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "2 passed" in done.stdout


def test_a_cluster_client_reaches_every_node(
    cluster_client: Any, key_prefix: str
) -> None:
    for index in range(30):
        cluster_client.set(f"{key_prefix}:{index}", index)

    found = [
        len(cluster_client.keys(f"{key_prefix}:*", target_nodes=node))
        for node in cluster_client.get_primaries()
    ]

    assert sum(found) == 30
    assert all(found)


async def test_an_asyncio_cluster_client_reaches_the_cluster(
    async_cluster_client: Any, key_prefix: str
) -> None:
    await async_cluster_client.set(key_prefix, "1")

    assert await async_cluster_client.get(key_prefix) == b"1"


async def test_both_clients_speak_to_one_server(
    redis_client: Any, async_redis_client: Any, key_prefix: str
) -> None:
    await async_redis_client.set(key_prefix, "1")

    assert redis_client.get(key_prefix) == b"1"


@pytest.mark.parametrize("_again", [1, 2])
async def test_each_fakeredis_is_empty_and_runs_lua(
    fake_redis: Any, async_fake_redis: Any, _again: int
) -> None:
    script = "return redis.call('INCR', KEYS[1])"

    assert fake_redis.eval(script, 1, "key") == 1
    assert await async_fake_redis.eval(script, 1, "key") == 1
