"""Workers need real threads: where gevent has patched them, they say so at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.errors import ConfigurationError
from workstealing.workers.engine import check_threads


@pytest.fixture
def queue() -> Iterator[TaskQueue]:
    # Nobody listens there, and nobody is asked.
    queue = TaskQueue("patched", "redis://127.0.0.1:1/0")
    yield queue
    queue.close()


def _patch(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Leave the mark by which gevent tells what it has patched."""
    marked = SimpleNamespace(is_module_patched=modules.__contains__)
    monkeypatch.setitem(sys.modules, "gevent.monkey", marked)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_a_pool_does_not_start_where_threads_are_greenlets(
    queue: TaskQueue, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    _patch(monkeypatch, "socket", "threading")

    with pytest.raises(ConfigurationError, match="workstealing worker"):
        WorkerPool(queue, 1, kind).start()


def test_a_worker_does_not_run_where_threads_are_greenlets(
    queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    _patch(monkeypatch, "threading")

    with pytest.raises(ConfigurationError, match="workstealing worker"):
        Worker(queue).run(until_empty=True)


def test_what_else_gevent_patches_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _patch(monkeypatch, "socket", "ssl")

    check_threads()


def test_the_mark_is_the_one_that_gevent_leaves() -> None:
    monkey = pytest.importorskip("gevent.monkey")

    assert not monkey.is_module_patched("threading")
