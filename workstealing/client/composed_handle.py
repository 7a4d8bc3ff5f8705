"""The handles of chains and groups: their steps, members, progress, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from workstealing._checks import checked_id, checked_timeout
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.errors import RedisUnavailable, ResultTimeout, TaskNotFound
from workstealing.queue import inspection_calls, producer_calls
from workstealing.queue.composition_calls import GroupProgress, read_group
from workstealing.queue.inspection_calls import Trace
from workstealing.queue.producer_calls import Cancelled, RequestedOutcome
from workstealing.queue.steps import Flow, Pipeline, Sleep, ask
from workstealing.tasks.envelope import member_id
from workstealing.tasks.member_result import MemberResult, member_results
from workstealing.tasks.signature import decode_result

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver

__all__ = (
    "AsyncChainHandle",
    "AsyncGroupChainHandle",
    "AsyncGroupHandle",
    "ChainHandle",
    "GroupChainHandle",
    "GroupHandle",
    "async_group_handle",
    "group_handle",
)

M = TypeVar("M")
R = TypeVar("R")

_SLICE = 100
_SOON_SECONDS = 0.01
_LATEST_SECONDS = 0.5
_NO_PROGRESS = GroupProgress(0, 0, 0)


class _AnyGroupHandle(Generic[R]):
    """What a `GroupHandle` and an `AsyncGroupHandle` have in common."""

    __slots__ = ("_internals", "_types", "id", "members")

    def __init__(
        self, internals: Any, group: str, members: Any, types: Sequence[Any]
    ) -> None:
        self._internals = internals
        self._types = types
        self.id = group
        self.members = members

    @property
    def _ids(self) -> list[str]:
        return [member.id for member in self.members]

    # Hidden from type checkers, which would let any name pass.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = ": a group has results(), one of each member"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                f"{hint if name == 'result' else ''}",
                name=name,
                obj=self,
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {len(self.members)}>"


class GroupHandle(_AnyGroupHandle[R]):
    """A group that was submitted.

    Attributes:
        id: of the group; also that of the step after it, if there is one.
        members: the handles of its tasks, in their order.
    """

    __slots__ = ()
    _internals: QueueInternals[Driver]
    members: Sequence[TaskHandle[R]]

    def progress(self) -> GroupProgress:
        """Return how many members have ended, and how many have failed.

        Raises:
            TaskNotFound: the group ended so long ago that it was forgotten.
        """
        flow = _progress(self._internals, self.id, self._ids)
        return self._internals.driver.run(flow)

    def results(self, timeout: float | None = None) -> list[MemberResult[R]]:
        """Wait for all members to end; return the result or error of each, in order.

        Raises:
            ResultTimeout: some members did not end in time.
            ResultInvalid: a result does not match its task's return type.
        """
        seconds = checked_timeout(timeout)
        flow = _results(self._internals, self.id, self._ids, seconds)
        return _decoded(self._internals.driver.run(flow), self._types)

    def cancel(self) -> int:
        """Cancel the members that have not ended; return how many that were.

        The step after the group, if there is one, is begun all the same.
        """
        flow = _cancel_members(self._internals, self._ids)
        return _number_live(self._internals.driver.run(flow))


class AsyncGroupHandle(_AnyGroupHandle[R]):
    """A group that was submitted; the asyncio twin of `GroupHandle`."""

    __slots__ = ()
    _internals: QueueInternals[AsyncDriver]
    members: Sequence[AsyncTaskHandle[R]]

    async def progress(self) -> GroupProgress:
        """Return how many members have ended; see `GroupHandle.progress`."""
        flow = _progress(self._internals, self.id, self._ids)
        return await self._internals.driver.run(flow)

    async def results(self, timeout: float | None = None) -> list[MemberResult[R]]:
        """Wait for all members to end; see `GroupHandle.results`."""
        seconds = checked_timeout(timeout)
        flow = _results(self._internals, self.id, self._ids, seconds)
        return _decoded(await self._internals.driver.run(flow), self._types)

    async def cancel(self) -> int:
        """Cancel the members that have not ended; see `GroupHandle.cancel`."""
        flow = _cancel_members(self._internals, self._ids)
        return _number_live(await self._internals.driver.run(flow))


class ChainHandle(TaskHandle[R]):
    """A chain that was submitted: the handle of its last step.

    Attributes:
        steps: the handles of all steps, in their order; the last one is its own.
    """

    __slots__ = ("steps",)

    def __init__(
        self,
        internals: QueueInternals[Driver],
        steps: Sequence[TaskHandle[Any]],
        result_type: Any,
    ) -> None:
        super().__init__(internals, steps[-1].id, result_type, True)
        self.steps = steps

    def cancel(self) -> Cancelled:
        """Cancel all steps that have not ended.

        Returns:
            "asked" if one still runs and was asked to stop, else "cancelled", or
            "ended" if all had ended.
        """
        return self._internals.driver.run(_cancel_all(self._internals, self.steps))


class AsyncChainHandle(AsyncTaskHandle[R]):
    """A chain that was submitted; the asyncio twin of `ChainHandle`."""

    __slots__ = ("steps",)

    def __init__(
        self,
        internals: QueueInternals[AsyncDriver],
        steps: Sequence[AsyncTaskHandle[Any]],
        result_type: Any,
    ) -> None:
        super().__init__(internals, steps[-1].id, result_type, True)
        self.steps = steps

    async def cancel(self) -> Cancelled:
        """Cancel all steps that have not ended; see `ChainHandle.cancel`."""
        flow = _cancel_all(self._internals, self.steps)
        return await self._internals.driver.run(flow)


class GroupChainHandle(ChainHandle[R], Generic[M, R]):
    """A group with steps after it: the handle of its last step.

    Attributes:
        group: the handle of the group.
        steps: the handles of the steps after it.
    """

    __slots__ = ("group",)

    def __init__(
        self,
        internals: QueueInternals[Driver],
        group: GroupHandle[M],
        steps: Sequence[TaskHandle[Any]],
        result_type: Any,
    ) -> None:
        super().__init__(internals, steps, result_type)
        self.group = group

    def cancel(self) -> Cancelled:
        """Cancel all steps and members that have not ended.

        Returns:
            "asked" if one still runs and was asked to stop, else "cancelled", or
            "ended" if all had ended.
        """
        flow = _cancel_all(self._internals, self.steps, self.group.members)
        return self._internals.driver.run(flow)


class AsyncGroupChainHandle(AsyncChainHandle[R], Generic[M, R]):
    """A group with steps after it; the asyncio twin of `GroupChainHandle`."""

    __slots__ = ("group",)

    def __init__(
        self,
        internals: QueueInternals[AsyncDriver],
        group: AsyncGroupHandle[M],
        steps: Sequence[AsyncTaskHandle[Any]],
        result_type: Any,
    ) -> None:
        super().__init__(internals, steps, result_type)
        self.group = group

    async def cancel(self) -> Cancelled:
        """Cancel all steps and members; see `GroupChainHandle.cancel`."""
        flow = _cancel_all(self._internals, self.steps, self.group.members)
        return await self._internals.driver.run(flow)


def group_handle(internals: QueueInternals[Driver], group: str) -> GroupHandle[Any]:
    """Return the handle of a group that any process has submitted."""
    ids = internals.driver.run(_member_ids(internals, group))
    members = [TaskHandle[Any](internals, one, Any) for one in ids]
    return GroupHandle(internals, group, members, [Any] * len(ids))


async def async_group_handle(
    internals: QueueInternals[AsyncDriver], group: str
) -> AsyncGroupHandle[Any]:
    """Return the handle of a group that any process has submitted."""
    ids = await internals.driver.run(_member_ids(internals, group))
    members = [AsyncTaskHandle[Any](internals, one, Any) for one in ids]
    return AsyncGroupHandle(internals, group, members, [Any] * len(ids))


def _member_ids(internals: QueueInternals[Any], group: str) -> Flow[list[str]]:
    seen = yield from _group(internals, checked_id(group))
    if seen is None:
        raise TaskNotFound(f"there is no group {group}, or it was forgotten")
    return [member_id(group, place) for place in range(seen.total)]


def _group(internals: QueueInternals[Any], group: str) -> Flow[GroupProgress | None]:
    """Look at a group, which is where its members are."""
    keys = yield from internals.keys_of(member_id(group, 0))
    return (yield from ask(read_group(keys, group)))


def _progress(
    internals: QueueInternals[Any], group: str, ids: Sequence[str]
) -> Flow[GroupProgress]:
    if not ids:
        return _NO_PROGRESS
    seen = yield from _group(internals, group)
    if seen is None:
        raise TaskNotFound(f"group {group} was forgotten, since it ended long ago")
    return seen


def _results(
    internals: QueueInternals[Any],
    group: str,
    ids: Sequence[str],
    timeout: float | None,
) -> Flow[list[MemberResult[msgspec.Raw]]]:
    """Wait for a group: it is counted in one place, so nobody looks at each member."""
    clock = internals.clock
    end = None if timeout is None else clock.monotonic() + timeout
    pause, left = _SOON_SECONDS, len(ids)
    while ids:
        try:
            seen = yield from _group(internals, group)
            left = 0 if seen is None else seen.left
            if left == 0:
                outcomes = yield from _outcomes(internals, ids)
                left = sum(one.verdict == "pending" for one in outcomes)
            if left == 0:
                found = [one.outcome for one in outcomes]
                return member_results(list(zip(ids, found, strict=True)))
        except RedisUnavailable:
            # It may come back: only the timeout ends the wait.
            pause = _LATEST_SECONDS
        rest = pause if end is None else end - clock.monotonic()
        if rest <= 0.0:
            raise ResultTimeout(
                f"group {group}: {left} of {len(ids)} members did not end within"
                f" {timeout:g} s"
            )
        yield Sleep(min(pause, rest))
        pause = min(2 * pause, _LATEST_SECONDS)
    return []


def _outcomes(
    internals: QueueInternals[Any], ids: Sequence[str]
) -> Flow[list[RequestedOutcome]]:
    keys = yield from internals.keys_of(ids[0])
    calls = [
        producer_calls.read_outcomes(keys, ids[first : first + _SLICE])
        for first in range(0, len(ids), _SLICE)
    ]
    answers: list[list[RequestedOutcome]] = yield Pipeline(calls)
    return [one for answer in answers for one in answer]


def _decoded(
    results: Sequence[MemberResult[msgspec.Raw]], types: Sequence[Any]
) -> list[MemberResult[Any]]:
    return [
        msgspec.structs.replace(one, value=decode_result(one.value, kind))
        if one.value is not None
        else one
        for one, kind in zip(results, types, strict=True)
    ]


def _cancel_all(
    internals: QueueInternals[Any],
    steps: Sequence[TaskHandle[Any] | AsyncTaskHandle[Any]],
    members: Sequence[TaskHandle[Any] | AsyncTaskHandle[Any]] = (),
) -> Flow[Cancelled]:
    """Cancel from the end: what waits is not begun meanwhile."""
    seen: set[Cancelled] = set()
    for step in reversed(steps):
        verdict = yield from internals.cancel(step.id)
        seen.add(verdict)
    seen.update((yield from _cancel_members(internals, [one.id for one in members])))
    order: tuple[Cancelled, ...] = ("asked", "cancelled", "ended")
    return next((verdict for verdict in order if verdict in seen), "unknown")


def _number_live(verdicts: Sequence[Cancelled]) -> int:
    return sum(verdict in ("asked", "cancelled") for verdict in verdicts)


def _cancel_members(
    internals: QueueInternals[Any], ids: Sequence[str]
) -> Flow[list[Cancelled]]:
    """Cancel members; return what became of those that had not ended."""
    found: list[Cancelled] = []
    if not ids:
        return found
    keys = yield from internals.keys_of(ids[0])
    for first in range(0, len(ids), _SLICE):
        part = ids[first : first + _SLICE]
        calls = [inspection_calls.trace(keys, task_id) for task_id in part]
        traces: list[Trace] = yield Pipeline(calls)
        live = [
            (task_id, seen)
            for task_id, seen in zip(part, traces, strict=True)
            if seen.envelope and not seen.outcome
        ]
        cancels = [internals.outcomes.cancelling(keys, *one) for one in live]
        verdicts: list[Cancelled] = yield Pipeline(cancels)
        for (task_id, _), verdict in zip(live, verdicts, strict=True):
            if verdict == "moved":
                verdict = yield from internals.cancel(task_id)
            found.append(verdict)
    return found
