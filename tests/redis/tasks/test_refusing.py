"""What a worker refuses reaches the caller, with the same error as at the door.

The callers here know less than the worker, a process of its own: they have no policy,
or an older idea of the task. So nothing is refused before it is in the queue.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import Any

import pytest

import workstealing
from workstealing import (
    AccessPolicy,
    ClientContext,
    Registry,
    TaskClient,
    TaskQueue,
    connect,
)
from workstealing.errors import (
    NotPermitted,
    PayloadInvalid,
    RedisUnavailable,
    ResultTimeout,
    TaskDead,
    UnknownTask,
)
from workstealing.tasks.outcome import State
from workstealing.tasks.policy import PUBLIC
from workstealing.testing import Server, wait_until

ROOT = Path(workstealing.__file__).parents[1]
ANN = ClientContext("ann", {"editor"})
BOB = ClientContext("bob", {"viewer"})

WORKER = """
    import sys, time
    from pathlib import Path
    from workstealing import AccessPolicy, TaskQueue, Worker
    from workstealing.tasks.policy import PUBLIC

    name, url, folder = sys.argv[1:]
    policy = AccessPolicy({"editor": {"images.resize"}})
    queue = TaskQueue(name, url, policy=policy, lease=1)

    @queue.task(name="images.resize", permission="images.resize")
    def resize(path: str, width: int) -> str:
        (Path(folder) / "ran").touch()
        return f"{path}@{width}"

    @queue.task(name="secret")
    def secret() -> None:
        (Path(folder) / "ran").touch()

    @queue.task(name="hello", permission=PUBLIC)
    def hello() -> str:
        return "hello"

    @queue.task(name="hold", permission=PUBLIC)
    def hold() -> None:
        (Path(folder) / "held").touch()
        while not (Path(folder) / "go").exists():
            time.sleep(0.01)

    Worker(queue, batch=1).run()
"""


@pytest.fixture
def start(tmp_path: Path, key_prefix: str) -> Iterator[Callable[[str], Any]]:
    """Start the worker in a process of its own."""
    (tmp_path / "worker.py").write_text(dedent(WORKER))
    started: list[subprocess.Popen[bytes]] = []

    def start(url: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "worker.py", key_prefix, url, str(tmp_path)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        # Where the server is gone, a worker that is asked to stop waits for it.
        process.kill()
        process.wait()


@pytest.fixture
def client(make_queue: Callable[..., TaskQueue]) -> TaskClient:
    """A client that believes what it likes."""
    registry = Registry()

    def anything(path: str = "", width: str | int = 0) -> str: ...

    def nothing() -> str: ...

    registry.contract("images.resize", anything)
    for name in ("secret", "hello", "hold", "unheard-of"):
        registry.contract(name, nothing)
    return TaskClient(make_queue(registry=registry))


@pytest.fixture
def worker(start: Callable[[str], Any], redis_server: Server) -> Any:
    return start(redis_server.url)


def test_a_worker_refuses_who_may_not_call(
    worker: Any, client: TaskClient, tmp_path: Path
) -> None:
    payload = {"path": "a", "width": 1}
    with pytest.raises(NotPermitted) as refused:
        client.call(BOB, "images.resize", payload, str, 20)

    told = refused.value
    assert (told.task, told.principal, told.roles) == ("images.resize", "bob", "viewer")
    assert told.permission == "images.resize"
    assert "'bob' may not call it" in str(told)
    assert not (tmp_path / "ran").exists()
    assert client.call(ANN, "images.resize", payload, str, 20) == "a@1"


def test_a_worker_refuses_a_task_that_names_no_permission(
    worker: Any, client: TaskClient, tmp_path: Path
) -> None:
    with pytest.raises(NotPermitted, match="it names no permission"):
        client.call(ANN, "secret", {}, str, 20)

    assert not (tmp_path / "ran").exists()
    assert client.call(ClientContext(), "hello", {}, str, 20) == "hello"


def test_a_worker_judges_the_principal_before_the_payload(
    worker: Any, client: TaskClient
) -> None:
    with pytest.raises(NotPermitted):
        client.call(BOB, "images.resize", {"width": "wide"}, str, 20)


@pytest.mark.parametrize(
    ("payload", "where"),
    [({"path": "a", "width": "wide"}, "width"), ({"width": 1}, "path")],
)
def test_a_worker_refuses_a_payload_that_does_not_match(
    worker: Any, client: TaskClient, tmp_path: Path, payload: Any, where: str
) -> None:
    with pytest.raises(PayloadInvalid, match=f"'{where}'") as refused:
        client.call(ANN, "images.resize", payload, str, 20)

    assert (refused.value.task, refused.value.field) == ("images.resize", where)
    assert not (tmp_path / "ran").exists()


def test_what_was_refused_is_a_dead_letter_with_its_reason(
    worker: Any, client: TaskClient, make_queue: Callable[..., TaskQueue]
) -> None:
    handle = client.submit(BOB, "images.resize", {"path": "a", "width": 1}, str)
    wait_until(lambda: handle.state().state is State.DEAD, 20, "a verdict")

    queue = make_queue()
    assert "'bob' may not call it" in handle.state().reason
    assert queue.counts().dead == 1
    with pytest.raises(NotPermitted):
        queue.handle(handle.id).result(5)


def test_a_task_that_no_worker_knows_is_told_as_parked(
    worker: Any, client: TaskClient
) -> None:
    with pytest.raises(ResultTimeout, match=r"it is parked: .*unheard-of@1"):
        client.call(ANN, "unheard-of", {}, str, 5)
    with pytest.raises(UnknownTask):
        client.call(ANN, "unknown-here", {}, str, 5)


def test_nobody_works_and_the_caller_is_told(client: TaskClient) -> None:
    with pytest.raises(ResultTimeout, match="it is waiting"):
        client.call(ANN, "hello", {}, str, 0.2)


def test_a_worker_that_is_killed_again_and_again_leaves_an_answer(
    start: Callable[[str], Any],
    client: TaskClient,
    redis_server: Server,
    tmp_path: Path,
) -> None:
    handle = client.submit(ANN, "hold", {}, str)
    for _ in range(3):
        process = start(redis_server.url)
        wait_until((tmp_path / "held").exists, 20, "the task to run")
        process.kill()
        process.wait()
        (tmp_path / "held").unlink()
    start(redis_server.url)

    with pytest.raises(TaskDead, match="died 3 times"):
        handle.result(30)


def test_a_killed_worker_does_not_keep_its_caller_for_ever(
    start: Callable[[str], Any],
    client: TaskClient,
    redis_server: Server,
    tmp_path: Path,
) -> None:
    process = start(redis_server.url)
    assert client.call(ANN, "hello", {}, str, 20) == "hello"
    process.kill()
    process.wait()

    with pytest.raises(ResultTimeout, match="it is "):
        client.call(ANN, "hello", {}, str, 0.2)


def test_a_killed_worker_is_replaced_and_the_caller_is_answered(
    start: Callable[[str], Any],
    client: TaskClient,
    redis_server: Server,
    tmp_path: Path,
) -> None:
    process = start(redis_server.url)

    def kill_and_replace() -> None:
        process.kill()
        (tmp_path / "go").touch()
        start(redis_server.url)

    killer = _when((tmp_path / "held").exists, kill_and_replace)

    assert client.call(ANN, "hold", {}, type(None), 40) is None

    killer.join()


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    registry = Registry()
    registry.contract("hello", lambda: None)
    queue = TaskQueue("nowhere", "redis://127.0.0.1:1", registry=registry)

    with pytest.raises(RedisUnavailable):
        TaskClient(queue).call(ANN, "hello", {}, str, 30)


@pytest.fixture
def own_server() -> Iterator[Server]:
    with Server(tcp=True, appendonly="yes", appendfsync="always") as server:
        yield server


def calling(
    server: Server, name: str, redis: Any = None
) -> tuple[TaskClient, TaskQueue]:
    registry = Registry()
    registry.contract("hold", lambda: None)
    queue = TaskQueue(name, redis or server.url, registry=registry)
    return TaskClient(queue), queue


def test_a_server_that_is_lost_while_a_caller_waits_is_told_in_time(
    start: Callable[[str], Any], own_server: Server, key_prefix: str, tmp_path: Path
) -> None:
    client, queue = calling(own_server, key_prefix)
    start(own_server.url)
    stopper = _when((tmp_path / "held").exists, own_server.kill)

    with pytest.raises(ResultTimeout, match="the server is not available"):
        client.call(ANN, "hold", {}, type(None), 6)

    stopper.join()
    queue.close()


def test_a_server_that_comes_back_while_a_caller_waits_brings_the_answer(
    start: Callable[[str], Any], own_server: Server, key_prefix: str, tmp_path: Path
) -> None:
    client, queue = calling(own_server, key_prefix)
    start(own_server.url)

    def restart() -> None:
        own_server.restart()
        (tmp_path / "go").touch()

    restarter = _when((tmp_path / "held").exists, restart)

    client.call(ANN, "hold", {}, type(None), 40)

    restarter.join()
    queue.close()


def test_a_server_that_hangs_while_a_caller_waits_is_told_too(
    start: Callable[[str], Any], own_server: Server, key_prefix: str, tmp_path: Path
) -> None:
    impatient = connect(own_server.url, profile="tasks", timeout=0.5)
    client, queue = calling(own_server, key_prefix, impatient)
    start(own_server.url)
    wait_until(lambda: queue.counts().leases, 30, "the worker to be there")
    stopper = _when((tmp_path / "held").exists, own_server.pause)

    with pytest.raises(ResultTimeout, match="the server is not available"):
        client.call(ANN, "hold", {}, type(None), 6)
    stopper.join()
    with pytest.raises(RedisUnavailable):
        client.call(ANN, "hold", {}, type(None), 6)

    own_server.resume()
    queue.close()


def _when(condition: Callable[[], bool], act: Callable[[], object]) -> Any:
    def watch() -> None:
        wait_until(condition, 20, "its moment")
        act()

    thread = Thread(target=watch)
    thread.start()
    return thread


def test_the_door_and_the_worker_refuse_alike(
    worker: Any, client: TaskClient, make_queue: Callable[..., TaskQueue]
) -> None:
    queue = make_queue(policy=AccessPolicy({"editor": {"images.resize"}}))

    @queue.task(name="images.resize", permission="images.resize")
    def resize(path: str, width: int) -> str: ...

    @queue.task(name="hello", permission=PUBLIC)
    def hello() -> str: ...

    for context, payload in ((BOB, {"path": "a", "width": 1}), (ANN, {"path": "a"})):
        told = []
        for asked in (client, TaskClient(queue)):
            with pytest.raises((NotPermitted, PayloadInvalid)) as refused:
                asked.call(context, "images.resize", payload, str, 20)
            told.append((type(refused.value), str(refused.value)))
        assert told[0] == told[1]
    with pytest.raises(NotPermitted):
        resize.submit("a", 1)
    with pytest.raises(NotPermitted):
        resize.options(context=BOB).submit_many([("a", 1)])
    assert resize.options(context=ANN).submit("a", 1).result(20) == "a@1"
    assert hello.submit().result(20) == "hello"
