"""What tests of faults share: stories in a queue, and workers in processes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workstealing.testing import Server, wait_until

_HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    # Test folders are no packages, so what is beside us is not importable by name.
    module = sys.modules.get(f"faults_{name}")
    if module is None:
        spec = importlib.util.spec_from_file_location(
            f"faults_{name}", _HERE / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return module


class Crew:
    """Workers in processes of their own."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self, story: Any, *, pool: str = "", batch: int = 256, off: float = 0
    ) -> subprocess.Popen[bytes]:
        """Start a worker and wait until it has joined."""
        pool = pool or f"w{len(self._started)}"
        process = self.launch(story, pool=pool, batch=batch, off=off)
        wait_until(
            lambda: (
                f"{pool}.0" in story.queue.counts().leases or process.poll() is not None
            ),
            20,
            "a worker to join",
        )
        return process

    def launch(
        self, story: Any, *, pool: str, batch: int = 256, off: float = 0
    ) -> subprocess.Popen[bytes]:
        """Start a worker, whose clock is *off*, or the pool `web`, which recruits."""
        arguments = (story.name, story.url, story.sound_url, str(story.lease))
        process = subprocess.Popen(
            [
                sys.executable,
                str(_HERE / "child.py"),
                *arguments,
                pool,
                str(batch),
                str(off),
                str(story.shards),
            ],
            env={**os.environ, "PYTHONPATH": str(_HERE.parents[1])},
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._started:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def processes() -> Iterator[Crew]:
    crew = Crew()
    yield crew
    crew.end()


@pytest.fixture
def make_story(key_prefix: str) -> Iterator[Callable[..., Any]]:
    """Make a story on a server; its notes are on another if that one is to fail."""
    made: list[Any] = []

    def make(
        server: Server,
        url: str | None = None,
        notes: Server | None = None,
        lease: float = 1.0,
        shards: int = 1,
    ) -> Any:
        story = _load("child").Story(
            key_prefix, url or server.url, (notes or server).url, lease, shards
        )
        made.append(story)
        return story

    yield make
    for story in made:
        story.close()


@pytest.fixture
def make_proxy() -> Iterator[Callable[[Server], Any]]:
    proxies: list[Any] = []

    def make(server: Server) -> Any:
        proxies.append(_load("proxy").Proxy(server.port))
        return proxies[-1]

    yield make
    for proxy in proxies:
        proxy.close()


@pytest.fixture
def tcp_server() -> Iterator[Server]:
    """A server of this test's own, which keeps what it has on disk."""
    with Server(tcp=True, appendonly="yes", appendfsync="always") as server:
        yield server


@pytest.fixture
def make_load(key_prefix: str) -> Iterator[Callable[..., Any]]:
    """Make a queue in use; `load.py` says of what it consists."""
    made: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        made.append(_load("load").Load(key_prefix, url, **options))
        return made[-1]

    yield make
    for load in made:
        load.close()
