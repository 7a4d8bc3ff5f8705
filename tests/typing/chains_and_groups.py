"""How users compose tasks; checked by mypy, never run.

A line that must be refused has a `type: ignore` that names the error: if it were not
refused, the comment would be one too many, which is an error as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import assert_type

from workstealing import (
    AsyncChain,
    AsyncChainHandle,
    AsyncGroupChainHandle,
    AsyncGroupHandle,
    AsyncTaskHandle,
    AsyncTaskQueue,
    Chain,
    ChainHandle,
    Group,
    GroupChain,
    GroupChainHandle,
    GroupHandle,
    Link,
    MemberResult,
    Step,
    TaskHandle,
    TaskQueue,
    chain,
    group,
)

queue = TaskQueue("q")
async_queue = AsyncTaskQueue("q")


@queue.task
def fetch(url: str) -> bytes:
    return url.encode()


@queue.task
def count(page: bytes, least: int) -> int:
    return max(len(page), least)


@queue.task
def show(number: float) -> str:
    return str(number)


@queue.task
def add_up(counts: list[MemberResult[int]], extra: int = 0) -> int:
    return sum(one.result() for one in counts) + extra


@queue.task
def any_done(counts: Sequence[MemberResult[object]]) -> bool:
    return any(one.is_done for one in counts)


@queue.task
def clean_up() -> None:
    pass


@async_queue.task
async def async_fetch(url: str) -> bytes:
    return url.encode()


@async_queue.task
async def async_count(page: bytes) -> int:
    return len(page)


@async_queue.task
def async_add_up(counts: list[MemberResult[int]]) -> int:
    return sum(one.result() for one in counts)


def steps() -> None:
    assert_type(fetch.s("http://…"), Step[bytes])
    assert_type(fetch.s(), Link[str, bytes])
    assert_type(count.s(3), Link[bytes, int])
    assert_type(count.s(least=3), Link[bytes, int])
    assert_type(fetch.options(priority=0).s("http://…"), Step[bytes])
    assert_type(fetch.s("http://…").submit(), TaskHandle[bytes])
    fetch.s().submit()  # type: ignore[attr-defined]
    fetch.s(1)  # type: ignore[call-overload]
    count.s("three")  # type: ignore[call-overload]


def chains() -> None:
    assert_type(chain(fetch.s("http://…"), count.s(3)), Chain[int])
    assert_type(chain(fetch.s("http://…"), count.s(3), show.s()), Chain[str])
    assert_type(fetch.s("http://…") | count.s(3) | show.s(), Chain[str])
    # A step that has all of its arguments takes no result.
    assert_type(fetch.s("http://…") | clean_up.s(), Chain[None])
    handle = chain(fetch.s("http://…"), count.s(3)).submit()
    assert_type(handle, ChainHandle[int])
    assert_type(handle.result(), int)
    of_last: TaskHandle[int] = handle
    of_last.cancel()
    chain(fetch.s("http://…"), show.s())  # type: ignore[misc]
    fetch.s("http://…") | show.s()  # type: ignore[operator]
    count.s(3) | show.s()  # type: ignore[operator]
    chain(count.s(3), show.s())  # type: ignore[call-overload]


def groups() -> None:
    members = group(count.s(b"...", 3), count.s(b"...", 4))
    assert_type(members, Group[int])
    assert_type(group(count.s(b"...", n) for n in range(3)), Group[int])
    assert_type(members.submit(), GroupHandle[int])
    assert_type(members.submit().results(), list[MemberResult[int]])
    assert_type(members | add_up.s(), GroupChain[int, int])
    assert_type(members | add_up.s(extra=1) | show.s(), GroupChain[int, str])
    members | any_done.s()
    handle = (members | add_up.s()).submit()
    assert_type(handle, GroupChainHandle[int, int])
    assert_type(handle.group, GroupHandle[int])
    handle.group.result()  # type: ignore[attr-defined]
    assert_type(handle.group.members[0].result(), int)
    group(fetch.s("http://…")) | add_up.s()  # type: ignore[operator]
    members | show.s()  # type: ignore[operator]
    group(count.s(3))  # type: ignore[call-overload]


async def with_asyncio() -> None:
    alone = await async_fetch.s("http://…").submit()
    assert_type(alone, AsyncTaskHandle[bytes])
    composed = chain(async_fetch.s("http://…"), async_count.s())
    assert_type(composed, AsyncChain[int])
    assert_type(await composed.submit(), AsyncChainHandle[int])
    members = group(async_count.s(b"...") for _ in range(3))
    assert_type(await members.submit(), AsyncGroupHandle[int])
    handle = await (members | async_add_up.s()).submit()
    assert_type(handle, AsyncGroupChainHandle[int, int])
    assert_type(await handle.group.results(), list[MemberResult[int]])
    async_fetch.s("http://…") | count.s(3)  # type: ignore[operator]
    chain(async_fetch.s("http://…"), show.s())  # type: ignore[call-overload]
