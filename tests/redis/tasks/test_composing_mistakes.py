"""Chains and groups as people try them first: what works, and what an error says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from workstealing import (
    AsyncTaskQueue,
    ExecutionContext,
    Inspector,
    MemberResult,
    TaskQueue,
    Worker,
    chain,
    group,
)
from workstealing.errors import ConfigurationError, PayloadInvalid, TaskCancelled
from workstealing.testing import Server

Make = Callable[..., TaskQueue]


class Pages:
    """Tasks of one queue; `hold` runs until it is cancelled."""

    def __init__(self, queue: TaskQueue) -> None:
        self.queue, self.began = queue, Event()

        @queue.task(name="fetch")
        def fetch(url: str) -> str:
            return f"<p>{url}</p>"

        @queue.task(name="count")
        def count(page: str, least: int = 0) -> int:
            return max(len(page), least)

        @queue.task(name="add")
        def add(x: int, y: int) -> int:
            return x + y

        @queue.task(name="hold")
        def hold(url: str, context: ExecutionContext | None = None) -> str:
            assert context is not None
            self.began.set()
            while True:
                context.check()

        @queue.task(name="total")
        def total(counts: list[MemberResult[Any]]) -> int:
            return len(counts)

        self.fetch, self.count, self.add = fetch, count, add
        self.hold, self.total = hold, total


@pytest.fixture
def pages(make_queue: Make) -> Pages:
    return Pages(make_queue())


def test_a_step_with_a_wrong_argument_is_refused_as_submit_would(pages: Pages) -> None:
    fetch: Any = pages.fetch
    for step in (lambda: fetch.s(3), lambda: fetch.s(url=3)):
        with pytest.raises(PayloadInvalid) as refused:
            step()
        with pytest.raises(PayloadInvalid) as expected:
            fetch.submit(3)
        assert str(refused.value) == str(expected.value)
    add: Any = pages.add
    with pytest.raises(PayloadInvalid, match="'y' is missing"):
        add.s(x=1)


def test_a_wrong_first_argument_is_not_taken_for_the_second(pages: Pages) -> None:
    with pytest.raises(PayloadInvalid, match=r"'page': expected `str`, got `int`; if"):
        pages.count.s(3)

    handle = (pages.fetch.s("a.org") | pages.count.s(least=30)).submit()
    Worker(pages.queue).run(until_empty=True)
    assert handle.result(timeout=5) == 30


def test_what_follows_a_group_must_take_member_results(make_queue: Make) -> None:
    queue = make_queue()
    pages = Pages(queue)
    members: Any = group(pages.fetch.s("a.org"))

    def numbers(ns: list[int]) -> None: ...
    def text(ns: str) -> None: ...
    def one(ns: MemberResult[int]) -> None: ...
    def plain(ns) -> None: ...  # type: ignore[no-untyped-def]
    def rows(ns: list[dict[str, Any]]) -> None: ...
    def results(ns: tuple[MemberResult[str], ...] | None) -> None: ...

    for wrong in (numbers, text, one):
        task = queue.task(name=wrong.__name__)(wrong)
        with pytest.raises(ConfigurationError, match=r"'ns' must be a list\[MemberRes"):
            members | task.s()
    for right in (plain, rows, results):
        members | queue.task(name=right.__name__)(right).s()


def test_cancelling_says_whether_anything_still_runs(pages: Pages, crew: Any) -> None:
    crew.start(pages.queue)
    whole = (group(pages.hold.s("a.org")) | pages.total.s()).submit()
    assert pages.began.wait(20)

    assert whole.cancel() == "asked"

    pages.began.clear()
    steps = (pages.hold.s("b.org") | pages.count.s()).submit()
    assert pages.began.wait(20)
    assert steps.cancel() == "asked"
    whole.group.results(timeout=20)
    assert whole.cancel() == "ended"


def test_a_running_task_that_is_cancelled_says_so_once(pages: Pages, crew: Any) -> None:
    crew.start(pages.queue)
    handle = pages.hold.submit("a.org")
    assert pages.began.wait(20)
    handle.cancel()

    with pytest.raises(TaskCancelled) as raised:
        handle.result(timeout=20)
    assert str(raised.value) == f"task {handle.id} was cancelled"


def test_a_step_alone_is_submitted_as_its_task(pages: Pages) -> None:
    handle = pages.count.options(priority=0).s("page", 9).submit()
    assert Inspector(pages.queue).stat().waiting == 1
    Worker(pages.queue).run(until_empty=True)

    assert (handle.is_new, handle.result(timeout=5)) == (True, 9)


def test_a_step_of_an_asyncio_queue_is_submitted_as_its_task(
    redis_server: Server, key_prefix: str
) -> None:
    async def tell() -> int:
        async with AsyncTaskQueue(key_prefix, redis_server.url) as queue:

            @queue.task(name="double")
            async def double(x: int) -> int:
                return 2 * x

            handle = await double.s(4).submit()
            worker = Worker(queue.sync())
            await asyncio.to_thread(worker.run, until_empty=True)
            members: Any = await group(double.s(4)).submit()
            with pytest.raises(AttributeError, match=r"results\(\)"):
                await members.result(timeout=5)
            return await handle.result(timeout=5)

    assert asyncio.run(tell()) == 8


def test_what_cannot_be_composed_is_refused_with_what_to_do(pages: Pages) -> None:
    fetch: Any = pages.fetch
    step = fetch.s("a.org")
    anything: Any = group
    for compose, words in (
        (lambda: step | group(step), "cannot follow a step.*from within that step"),
        (lambda: chain(step, anything(step)), "cannot follow a step"),
        (lambda: step | (step | pages.count.s()), "one by one"),
        (lambda: anything(step, step | pages.count.s()), "single steps as members"),
        (lambda: anything([step | pages.count.s()]), "single steps as members"),
        (lambda: anything(step | pages.count.s()), "single steps as members"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            compose()


def test_a_link_is_not_submitted_without_what_it_lacks(pages: Pages) -> None:
    link: Any = pages.count.s(least=3)

    with pytest.raises(ConfigurationError, match="'count' lacks its argument 'page'"):
        link.submit()


def test_a_group_has_results_and_says_so(pages: Pages) -> None:
    handle: Any = group(pages.fetch.s("a.org")).submit()

    with pytest.raises(AttributeError, match=r"'result': a group has results\(\)"):
        handle.result(timeout=5)
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        handle.other  # noqa: B018


def test_steps_that_wait_are_listed_with_what_they_wait_for(pages: Pages) -> None:
    parts = (pages.fetch.s("a.org") | pages.count.s()).submit()
    whole = (group(pages.fetch.s("a"), pages.fetch.s("b")) | pages.total.s()).submit()

    rows = {row.id: row for row in Inspector(pages.queue).ls("steps")}

    assert {task_id: row.note for task_id, row in rows.items()} == {
        parts.id: f"waits for task {parts.steps[0].id}",
        whole.id: "waits for its group of 2",
    }
    assert rows[parts.id].task == "count@1"
    assert len(Inspector(pages.queue).ls("steps", limit=1)) == 1


def test_a_listener_of_other_parameters_is_refused_when_the_task_is_defined(
    make_queue: Make,
) -> None:
    queue = make_queue()
    listener: Any = lambda reason: None  # noqa: E731

    with pytest.raises(ConfigurationError, match="the context and the reason, which"):
        queue.task(name="a", on_give_up=listener)(lambda: None)
    queue.task(name="b", on_give_up=lambda *told: None)(lambda: None)
    queue.task(name="c", on_give_up=print)(lambda: None)
