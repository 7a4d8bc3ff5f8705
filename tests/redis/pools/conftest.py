"""What stories about pools share: an application that children can import, and pools.

Its tasks leave notes in Redis by a client of their own: the list `<queue>:ran` has an
entry for each time that one was begun, and those that hold go on when `<queue>:go` is
there.
"""

from __future__ import annotations

import errno
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from redis import Redis

import workstealing
from workstealing.client.queue_internals import internals_of
from workstealing.queue import worker_calls
from workstealing.testing import Server, wait_until
from workstealing.workers.worker_pool import WorkerPool

ROOT = Path(workstealing.__file__).parents[1]

_APP = """
    from __future__ import annotations

    import asyncio
    import faulthandler
    import os
    import time

    from redis import Redis

    from workstealing import TaskQueue
    from workstealing.tasks.context import current_context

    NAME = {name!r}
    queue = TaskQueue(NAME, {url!r}, lease={lease!r})
    notes = Redis.from_url({sound_url!r})
    hoard = []


    def begun(number: int) -> None:
        notes.rpush(f"{{NAME}}:ran", number)


    def may_go() -> bool:
        return bool(notes.exists(f"{{NAME}}:go"))


    def is_first(word: str) -> bool:
        return bool(notes.setnx(f"{{NAME}}:{{word}}", 1))


    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b


    @queue.task(name="add_later")
    async def add_later(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b


    @queue.task(name="who")
    def who() -> int:
        return os.getpid()


    @queue.task(name="hold")
    def hold(number: int) -> int:
        begun(number)
        while not may_go():
            time.sleep(0.005)
        return current_context().attempt


    @queue.task(name="hold_later")
    async def hold_later(number: int) -> int:
        begun(number)
        while not may_go():
            await asyncio.sleep(0.005)
        return current_context().attempt


    @queue.task(name="once", restart="never")
    def once(number: int) -> int:
        return hold(number)


    @queue.task(name="quick_once", idempotent=False)
    def quick_once(number: int) -> int:
        time.sleep(0.02)
        return current_context().attempt


    def tell(context, reason):
        notes.rpush(f"{{NAME}}:told", f"{{context.id}} {{reason}}")


    @queue.task(name="endless", timeout=0.3, on_give_up=tell)
    def endless() -> None:
        # What cannot be stopped goes on until the last test ends: it must cost little.
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                pass


    @queue.task(name="endless_later", timeout=0.3)
    async def endless_later() -> None:
        await asyncio.sleep(100)


    @queue.task(name="mute")
    def mute() -> str:
        # Inside of a call that no exception reaches, until somebody else opens it.
        try:
            notes.rpush(f"{{NAME}}:mute", 1)
            os.close(os.open({pipe!r}, os.O_RDONLY))
        finally:
            notes.rpush(f"{{NAME}}:late", 1)
        return "too late"


    @queue.task(name="deaf", timeout=0.3)
    def deaf() -> str:
        return mute()


    @queue.task(name="leave")
    def leave() -> str:
        if is_first("left"):
            os._exit(3)
        return "stayed"


    @queue.task(name="crash")
    def crash() -> str:
        if is_first("crashed"):
            faulthandler._sigsegv()
        return "sound"


    @queue.task(name="poison")
    def poison() -> None:
        os._exit(3)


    @queue.task(name="swallow")
    def swallow(mebibytes: int) -> int:
        hoard.append(b"x" * (mebibytes << 20))
        return os.getpid()


    @queue.task(name="burst")
    def burst() -> None:
        bytearray(1 << 60)
"""


@pytest.fixture(scope="session", autouse=True)
def _children_need_no_test_runner() -> Iterator[None]:
    """A child imports the main module anew: spare each of them all of pytest."""
    main = sys.modules["__main__"]
    file, spec = getattr(main, "__file__", None), main.__spec__
    if file is not None:
        del main.__file__
    main.__spec__ = None
    yield
    if file is not None:
        main.__file__ = file
    main.__spec__ = spec


@pytest.fixture
def write_app(
    tmp_path: Path, redis_server: Server, key_prefix: str
) -> Callable[..., str]:
    """Write the application into the folder; return the name of its module.

    Its queue may be on a server that is to fail; its notes never are.
    """
    pipe = tmp_path / "pipe"

    def write(lease: float = 10.0, more: str = "", url: str | None = None) -> str:
        name = "app_" + key_prefix.replace("-", "_")
        if not pipe.exists():
            os.mkfifo(pipe)
        code = _APP.format(
            name=key_prefix,
            url=url or redis_server.url,
            sound_url=redis_server.url,
            lease=lease,
            pipe=str(pipe),
        )
        (tmp_path / f"{name}.py").write_text(dedent(code) + dedent(more))
        return name

    return write


@pytest.fixture
def make_app(
    write_app: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Import the application, as children will."""
    made: list[ModuleType] = []

    def make(lease: float = 10.0, more: str = "", url: str | None = None) -> Any:
        monkeypatch.syspath_prepend(tmp_path)
        made.append(importlib.import_module(write_app(lease, more, url)))
        return made[-1]

    yield make
    for app in made:
        app.queue.close()
        app.notes.close()
        del sys.modules[app.__name__]


@pytest.fixture
def app(make_app: Callable[..., Any]) -> Any:
    return make_app()


@pytest.fixture
def pools() -> Iterator[Callable[..., WorkerPool]]:
    """Make pools, and end them at the end of the test."""
    made: list[WorkerPool] = []

    def make(queue: Any, workers: int, kind: Any, **options: Any) -> WorkerPool:
        made.append(WorkerPool(queue, workers, kind, **options))
        return made[-1]

    yield make
    for pool in made:
        pool.stop(hot=True)


@pytest.fixture
def see(redis_client: Redis, key_prefix: str, tmp_path: Path) -> See:
    return See(redis_client, key_prefix, tmp_path / "pipe")


@pytest.fixture
def with_a_full_deque(
    pools: Callable[..., WorkerPool], see: See
) -> Callable[[Any, str], WorkerPool]:
    """Start a pool that runs one task, and has more in its deque."""

    def start(app: Any, kind: str) -> WorkerPool:
        queue = app.queue
        # With a fellow, real or not, a worker takes its share of the inbox in advance.
        settings: dict[str, list[str]] = {"abilities": []}
        call = worker_calls.join(
            internals_of(queue).keys,
            internals_of(queue).settings,
            "other.0",
            "i",
            settings,
        )
        internals_of(queue).driver.call(call)
        app.hold.submit_many([(n,) for n in range(9)])
        pool = pools(queue, 1, kind, name="mill")
        pool.start()
        see.wait_for(1)
        wait_until(lambda: queue.counts().loads.get("mill.0"), 20, "a full deque")
        return pool

    return start


@pytest.fixture
def script(
    write_app: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run a script beside the application; what still runs at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def run(code: str, *, lease: float = 10.0, more: str = "") -> subprocess.Popen[str]:
        (tmp_path / "script.py").write_text(
            dedent(code).replace("APP", write_app(lease, more))
        )
        process = subprocess.Popen(
            [sys.executable, "script.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield run
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


class MovedClock:
    """The time of the machine, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


class See:
    """What a test sees of its tasks, and tells them."""

    def __init__(self, client: Redis, name: str, pipe: Path) -> None:
        self._client = client
        self._name = name
        self._pipe = pipe

    def begun(self) -> list[int]:
        return [int(n) for n in self._client.lrange(f"{self._name}:ran", 0, -1)]

    def wait_for(self, number: int) -> list[int]:
        """Wait until so many tasks that hold were begun."""
        wait_until(lambda: len(self.begun()) >= number, 30, f"{number} to begin")
        return self.begun()

    def let_go(self) -> None:
        self._client.set(f"{self._name}:go", 1)

    def hold_again(self) -> None:
        self._client.delete(f"{self._name}:go", f"{self._name}:ran")

    def is_mute(self) -> bool:
        return bool(self._client.exists(f"{self._name}:mute"))

    def wake(self) -> None:
        """Let what is mute or deaf go on; or it was reached before it was."""
        wait_until(self._has_woken, 10, "somebody to wake")

    def _has_woken(self) -> bool:
        if self.hears_late():
            return True
        try:
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return False
        return True

    def hears_late(self) -> bool:
        return bool(self._client.exists(f"{self._name}:late"))

    def is_alive(self, pid: int) -> bool:
        try:
            return status_of(pid)[0] != "Z"
        except OSError:
            return False

    def parent_of(self, pid: int) -> int:
        return int(status_of(pid)[1])

    def all_keys(self) -> set[str]:
        found = self._client.scan_iter(match=f"*{self._name}*", count=1000)
        return {key.decode() for key in found}


def status_of(pid: int) -> list[str]:
    """Return what the system tells of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
