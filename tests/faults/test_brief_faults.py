"""A host that runs brief tasks while Redis is away, hangs, is full or read-only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import (
    AsyncBriefTasks,
    AsyncRecruiter,
    AsyncTaskQueue,
    BriefTasks,
    Duty,
    ExecutionContext,
    Recruiter,
    TaskQueue,
)
from workstealing.client.queue_internals import internals_of
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until


class Host:
    """Enlists until a task has begun, and lets a fault happen in the middle of it."""

    def __init__(self, url: str, name: str) -> None:
        self.queue = TaskQueue(name, url, lease=60)
        self.fault: Callable[[], object] = bool
        self.waited: list[float] = []
        self.begun = 0

        @self.queue.task(name="visit", brief=True, retries=3)
        def visit(context: ExecutionContext) -> str:
            self.begun += 1
            self.fault()
            for step in range(20):
                began_at = time.monotonic()
                context.save(step)
                self.waited.append(time.monotonic() - began_at)
            return "done"

        self.visit = visit
        self.spare = BriefTasks(self.queue)
        self.recruiter = Recruiter(share=None, breaker=None)
        self.recruiter.install(self.spare, "tasks", rate=1.0)

    def enlist_until(self, condition: Callable[[], object], what: str) -> None:
        wait_until(lambda: self.enlist() and condition(), 60, what)

    def enlist(self) -> bool:
        self.recruiter.enlist()
        return True

    def check_drained(self, handle: Any) -> None:
        self.fault = bool
        self.enlist_until(lambda: not self.queue.counts().unfinished, "the end")
        assert handle.result(timeout=5) == "done"
        assert self.queue.counts().stats["done"] == 1
        self.spare.close()
        self.queue.close()


def test_a_server_that_hangs_in_mid_task_is_waited_for_once_per_slice(
    tcp_server: Server, make_proxy: Callable[[Server], Any], key_prefix: str
) -> None:
    proxy = make_proxy(tcp_server)
    host = Host(proxy.url, key_prefix)
    handle = host.visit.submit()
    host.fault = lambda: proxy.swallow(True)
    host.enlist_until(lambda: host.begun, "the task to begin")

    # How long is not asserted: after one call that waited in vain, none was sent.
    assert len(host.waited) == 20
    proxy.swallow(False)
    proxy.cut_all()
    host.check_drained(handle)
    assert host.begun == 1, "what was done is reported later"


@pytest.mark.parametrize("fault", ["away", "read-only", "full"])
def test_a_host_sees_nothing_of_a_server_that_fails_in_mid_task(
    fault: str, tcp_server: Server, key_prefix: str
) -> None:
    host = Host(tcp_server.url, key_prefix)
    handle = host.visit.submit()
    admin: Any = internals_of(host.queue).driver.client

    def happen() -> None:
        if fault == "away":
            tcp_server.kill()
        elif fault == "read-only":
            admin.replicaof("127.0.0.1", "1")
        else:
            admin.config_set("maxmemory", 1)

    host.fault = happen
    host.enlist_until(lambda: host.begun, "the task to begin")
    host.fault = bool
    for _ in range(3):
        assert host.recruiter.enlist() in (Duty.DISMISSED, Duty.RECRUITED)
    if fault == "away":
        tcp_server.restart()
    elif fault == "read-only":
        admin.replicaof("NO", "ONE")
    else:
        admin.config_set("maxmemory", 0)
    host.check_drained(handle)


def test_what_a_lost_reply_has_given_is_taken_back_from_its_shard_first(
    tcp_server: Server, make_proxy: Callable[[Server], Any], key_prefix: str
) -> None:
    proxy = make_proxy(tcp_server)
    queue = TaskQueue(key_prefix, proxy.url, lease=60, shards=4)
    watched = TaskQueue(key_prefix, tcp_server.url, shards=4)

    @queue.task(name="visit", brief=True)
    def visit() -> None: ...

    spare = BriefTasks(queue)
    recruiter = Recruiter(share=None, breaker=None)
    recruiter.install(spare, "tasks", rate=1.0)

    def is_drained() -> bool:
        recruiter.enlist()
        return not watched.counts().unfinished

    for _ in range(20):
        visit.submit()
    wait_until(is_drained, 60, "all to be done, so that it is known how long they take")
    visit.submit_many([()] * 400)
    proxy.cut_reply_if(lambda request: b"brief-" in request)
    recruiter.enlist()
    assert watched.counts().stats["brief"] > 20, "it was given some"
    proxy.cut_reply_if(None)
    wait_until(is_drained, 60, "all to be done, long before the lease ends")

    assert watched.counts().stats["done"] == 420
    spare.close()
    queue.close()
    watched.close()


def test_what_a_lost_reply_has_given_goes_back_when_the_job_is_closed(
    tcp_server: Server, make_proxy: Callable[[Server], Any], key_prefix: str
) -> None:
    proxy = make_proxy(tcp_server)
    queue = TaskQueue(key_prefix, proxy.url, lease=60)
    watched = TaskQueue(key_prefix, tcp_server.url)

    @queue.task(name="visit", brief=True)
    def visit() -> None: ...

    spare = BriefTasks(queue)
    recruiter = Recruiter(share=None, breaker=None)
    recruiter.install(spare, "tasks", rate=1.0)

    def is_drained() -> bool:
        recruiter.enlist()
        return not watched.counts().unfinished

    visit.submit()
    wait_until(is_drained, 60, "the server to know the script")
    handle = visit.submit()
    proxy.cut_reply_if(lambda request: b"brief-" in request)
    recruiter.enlist()
    of_watched = watched.handle(handle.id)
    assert of_watched.state().state is State.RUNNING, "it was given"
    proxy.cut_reply_if(None)
    spare.close()

    assert of_watched.state().state is State.WAITING
    queue.close()
    watched.close()


async def test_an_asyncio_host_sees_nothing_of_a_server_that_hangs(
    tcp_server: Server, make_proxy: Callable[[Server], Any], key_prefix: str
) -> None:
    proxy = make_proxy(tcp_server)
    queue = AsyncTaskQueue(key_prefix, proxy.url, lease=60)
    begun: list[int] = []

    @queue.task(name="visit", brief=True)
    async def visit() -> str:
        begun.append(1)
        proxy.swallow(True)
        return "done"

    await visit.submit()
    spare = AsyncBriefTasks(queue)
    recruiter = AsyncRecruiter(share=None, breaker=None)
    recruiter.install(spare, "tasks", rate=1.0)
    deadline = time.monotonic() + 60
    while not begun and time.monotonic() < deadline:
        await recruiter.enlist()
    for _ in range(3):
        await recruiter.enlist()
    proxy.swallow(False)
    proxy.cut_all()
    looking = TaskQueue(key_prefix, tcp_server.url)
    while looking.counts().unfinished and time.monotonic() < deadline:
        await recruiter.enlist()
    assert looking.counts().stats["done"] == 1
    looking.close()
    await spare.close()
    await queue.close()
