"""A site without workers that runs its own tasks, and whose processes are killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.testing import Server, wait_until

# Of two kinds, one is fatal in each: even ones are coroutines where there are any.
TASKS, FATAL = 150, (40, 91)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("gunicorn", "brief_site"),
        ("gunicorn-preload", "brief_site"),
        ("gunicorn-threads", "brief_site"),
        ("uvicorn-workers", "brief_asgi_site"),
    ],
)
def test_a_site_whose_processes_are_killed_loses_no_task_and_ends_none_twice(
    server: str,
    name: str,
    serve: Callable[..., Any],
    redis_server: Server,
    key_prefix: str,
) -> None:
    queue = TaskQueue(key_prefix, redis_server.url, lease=2)

    @queue.task(name="visit", brief=True)
    def visit(number: int, is_fatal: bool) -> int:
        raise AssertionError("only the site runs it")

    @queue.task(name="count", brief=True)
    def count(number: int, is_fatal: bool) -> int:
        raise AssertionError("only the site runs it")

    kinds = (visit, count) if name == "brief_asgi_site" else (visit,)
    handles = [
        kinds[number % len(kinds)].submit(number, number in FATAL)
        for number in range(TASKS)
    ]
    settings = {"REDIS": redis_server.url, "QUEUE": key_prefix}
    site = serve(server, name, WEB_CONCURRENCY="2", **settings)

    def begun(number: int) -> list[int]:
        told = (line.split(":") for line in site.diary())
        return [int(pid) for task, pid in told if int(task) == number]

    def is_begun(number: int) -> bool:
        ask_for_page(site)
        return bool(begun(number))

    for number in FATAL:
        wait_until(partial(is_begun, number), 60, f"task {number} to begin")
        os.kill(begun(number)[0], signal.SIGKILL)

    def is_drained() -> bool:
        ask_for_page(site)
        return not queue.counts().unfinished

    wait_until(is_drained, 60, "all tasks to be done")
    assert [each.result(timeout=5) for each in handles] == list(range(TASKS))
    runs = Counter(int(line.split(":")[0]) for line in site.diary())
    assert set(runs) == set(range(TASKS))
    assert [runs[number] for number in FATAL] == [2, 2], "it began once more"
    assert max(runs.values()) == 2, "what died with it, and was not reported yet, too"
    stats = queue.counts().stats
    assert stats["done"] == TASKS
    assert stats["reassigned"] >= len(FATAL)
    assert stats["brief"] == TASKS + stats["reassigned"] + stats.get("back", 0)
    queue.close()


def ask_for_page(site: Any) -> None:
    """Ask, and do not wait for the end of a connection that a task may keep open.

    Nor for an answer, if a task that is fatal has met each process of the site.
    """
    with suppress(ConnectionError, TimeoutError), site.connect() as connection:
        connection.settimeout(2)
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: site\r\n\r\n")
        connection.recv(1024)
