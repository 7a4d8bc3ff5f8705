"""Chains and groups of tasks: `chain(a.s(1), b.s())`, `group(a.s(1), a.s(2)) | c.s()`.

`task.s(…)` is a task with its arguments, to be submitted later: a `Step` if it has all
of them, a `Link` if it lacks the first, which is the result of the step before it. The
step after a group takes a list of `MemberResult`. Nothing is sent before `.submit()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from workstealing.client.composed_handle import (
    AsyncChainHandle,
    AsyncGroupChainHandle,
    AsyncGroupHandle,
    ChainHandle,
    GroupChainHandle,
    GroupHandle,
)
from workstealing.client.composed_submission import (
    ComposedIds,
    PlannedStep,
    submit_alone,
    submit_composed,
)
from workstealing.client.handle import AsyncTaskHandle, TaskHandle
from workstealing.errors import ConfigurationError
from workstealing.tasks.member_result import MemberResult, takes_members

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals
    from workstealing.queue.steps import Flow

__all__ = (
    "AsyncChain",
    "AsyncGroup",
    "AsyncGroupChain",
    "AsyncLink",
    "AsyncStep",
    "Chain",
    "Group",
    "GroupChain",
    "Link",
    "Step",
    "chain",
    "group",
)

R_co = TypeVar("R_co", covariant=True)
M_co = TypeVar("M_co", covariant=True)
X_contra = TypeVar("X_contra", contravariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
H = TypeVar("H", bound=TaskHandle[Any] | AsyncTaskHandle[Any])
G = TypeVar("G", bound=GroupHandle[Any] | AsyncGroupHandle[Any])


class _AnyStep:
    """What steps and links have in common."""

    __slots__ = ("_plan",)

    def __init__(self, plan: PlannedStep) -> None:
        self._plan = plan

    def __repr__(self) -> str:
        lacks = f" without {self._plan.into}" if self._plan.into else ""
        return f"<{type(self).__name__} {self._plan.definition.name}{lacks}>"


class _AnyLink(_AnyStep):
    """What links have in common."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers refuse it themselves

        def submit(self) -> None:
            """Refuse to be submitted without the first argument."""
            name, into = self._plan.definition.name, self._plan.into
            raise ConfigurationError(
                f"task '{name}' lacks its argument '{into}', which it takes from the"
                " step before it: give that to .s(), or put the task into a chain"
            )


class _Composed:
    """What chains and groups have in common: members, if it has a group, and steps."""

    __slots__ = ("_members", "_steps")

    def __init__(
        self, members: tuple[PlannedStep, ...] | None, steps: tuple[PlannedStep, ...]
    ) -> None:
        self._members = members
        self._steps = steps

    @property
    def _internals(self) -> QueueInternals[Any]:
        for plan in (*(self._members or ()), *self._steps):
            return plan.internals
        raise ConfigurationError(
            "a group without members has nothing to submit: only a group with a step"
            " after it may be empty"
        )

    def _flow(self) -> Flow[ComposedIds]:
        return submit_composed(self._members, self._steps)

    def _step_handles(self, kind: type[H], ids: ComposedIds) -> list[H]:
        return _handles(kind, ids.steps, self._steps)

    def _group_handle(self, group: type[G], member: type[H], ids: ComposedIds) -> G:
        plans = self._members or ()
        members = _handles(member, ids.members, plans)
        types = [plan.result_type for plan in plans]
        return group(self._internals, ids.group, members, types)

    def _last_type(self) -> Any:
        return self._steps[-1].result_type

    def __repr__(self) -> str:
        names = [step.definition.name for step in self._steps]
        if self._members is not None:
            names.insert(0, f"group of {len(self._members)}")
        return f"<{type(self).__name__} {' | '.join(names)}>"


class Step(_AnyStep, Generic[R_co]):
    """A task with all of its arguments, to be submitted later."""

    __slots__ = ()

    def __or__(self, then: Then[R_co, B]) -> Chain[B]:
        """Return a chain: *then* runs when this step is done, and takes its result."""
        return Chain(None, (self._plan, _next(then, Step, Link)))

    def submit(self) -> TaskHandle[R_co]:
        """Put the task into the queue, without a chain or group."""
        plan, internals = self._plan, self._plan.internals
        done = internals.driver.run(submit_alone(plan))
        return TaskHandle(internals, done.ids[0], plan.result_type, True)


class Link(_AnyLink, Generic[X_contra, R_co]):
    """A task that lacks its first argument: the result of the step before it."""

    __slots__ = ()


Then: TypeAlias = Link[A, B] | Step[B]
"""What may follow a step that returns A: it takes that, or has all of its arguments."""


class Chain(_Composed, Generic[R_co]):
    """Tasks that run one after the other; each takes the result of the one before."""

    __slots__ = ()

    def __or__(self, then: Then[R_co, B]) -> Chain[B]:
        """Return a chain with one more step."""
        return Chain(None, (*self._steps, _next(then, Step, Link)))

    def submit(self) -> ChainHandle[R_co]:
        """Put all steps into the queue; return the handle of the last one."""
        ids = self._internals.driver.run(self._flow())
        steps = self._step_handles(TaskHandle, ids)
        return ChainHandle(self._internals, steps, self._last_type())


class Group(_Composed, Generic[R_co]):
    """Tasks that run side by side; it ends when all have ended, failed or not."""

    __slots__ = ()

    def __or__(self, then: Then[list[MemberResult[R_co]], B]) -> GroupChain[R_co, B]:
        """Return the group with a step that runs when all members have ended."""
        return GroupChain(self._members, (_after_group(then, Step, Link),))

    def submit(self) -> GroupHandle[R_co]:
        """Put all members into the queue, a thousand at a time."""
        ids = self._internals.driver.run(self._flow())
        return self._group_handle(GroupHandle[R_co], TaskHandle[Any], ids)


class GroupChain(_Composed, Generic[M_co, R_co]):
    """A group and the steps that run after it."""

    __slots__ = ()

    def __or__(self, then: Then[R_co, B]) -> GroupChain[M_co, B]:
        """Return it with one more step."""
        steps = (*self._steps, _next(then, Step, Link))
        return GroupChain(self._members, steps)

    def submit(self) -> GroupChainHandle[M_co, R_co]:
        """Put all of it into the queue; return the handle of the last step."""
        ids = self._internals.driver.run(self._flow())
        steps = self._step_handles(TaskHandle, ids)
        group = self._group_handle(GroupHandle[M_co], TaskHandle[Any], ids)
        return GroupChainHandle(self._internals, group, steps, self._last_type())


class AsyncStep(_AnyStep, Generic[R_co]):
    """A task with all of its arguments; the asyncio twin of `Step`."""

    __slots__ = ()

    def __or__(self, then: AsyncThen[R_co, B]) -> AsyncChain[B]:
        """Return a chain: *then* runs when this step is done, and takes its result."""
        return AsyncChain(None, (self._plan, _next(then, AsyncStep, AsyncLink)))

    async def submit(self) -> AsyncTaskHandle[R_co]:
        """Put the task into the queue, without a chain or group."""
        plan, internals = self._plan, self._plan.internals
        done = await internals.driver.run(submit_alone(plan))
        return AsyncTaskHandle(internals, done.ids[0], plan.result_type, True)


class AsyncLink(_AnyLink, Generic[X_contra, R_co]):
    """A task that lacks its first argument; the asyncio twin of `Link`."""

    __slots__ = ()


AsyncThen: TypeAlias = AsyncLink[A, B] | AsyncStep[B]
"""What may follow a step that returns A: it takes that, or has all of its arguments."""


class AsyncChain(_Composed, Generic[R_co]):
    """Tasks that run one after the other; the asyncio twin of `Chain`."""

    __slots__ = ()

    def __or__(self, then: AsyncThen[R_co, B]) -> AsyncChain[B]:
        """Return a chain with one more step."""
        return AsyncChain(None, (*self._steps, _next(then, AsyncStep, AsyncLink)))

    async def submit(self) -> AsyncChainHandle[R_co]:
        """Put all steps into the queue; return the handle of the last one."""
        ids = await self._internals.driver.run(self._flow())
        steps = self._step_handles(AsyncTaskHandle, ids)
        return AsyncChainHandle(self._internals, steps, self._last_type())


class AsyncGroup(_Composed, Generic[R_co]):
    """Tasks that run side by side; the asyncio twin of `Group`."""

    __slots__ = ()

    def __or__(
        self, then: AsyncThen[list[MemberResult[R_co]], B]
    ) -> AsyncGroupChain[R_co, B]:
        """Return the group with a step that runs when all members have ended."""
        step = _after_group(then, AsyncStep, AsyncLink)
        return AsyncGroupChain(self._members, (step,))

    async def submit(self) -> AsyncGroupHandle[R_co]:
        """Put all members into the queue, a thousand at a time."""
        ids = await self._internals.driver.run(self._flow())
        return self._group_handle(AsyncGroupHandle[R_co], AsyncTaskHandle[Any], ids)


class AsyncGroupChain(_Composed, Generic[M_co, R_co]):
    """A group and the steps that run after it; the asyncio twin of `GroupChain`."""

    __slots__ = ()

    def __or__(self, then: AsyncThen[R_co, B]) -> AsyncGroupChain[M_co, B]:
        """Return it with one more step."""
        steps = (*self._steps, _next(then, AsyncStep, AsyncLink))
        return AsyncGroupChain(self._members, steps)

    async def submit(self) -> AsyncGroupChainHandle[M_co, R_co]:
        """Put all of it into the queue; return the handle of the last step."""
        ids = await self._internals.driver.run(self._flow())
        steps = self._step_handles(AsyncTaskHandle, ids)
        group = self._group_handle(AsyncGroupHandle[M_co], AsyncTaskHandle[Any], ids)
        return AsyncGroupChainHandle(self._internals, group, steps, self._last_type())


@overload
def chain(first: Step[A], /) -> Chain[A]: ...
@overload
def chain(first: Step[A], second: Then[A, B], /) -> Chain[B]: ...
@overload
def chain(first: Step[A], second: Then[A, B], third: Then[B, C], /) -> Chain[C]: ...
@overload
def chain(
    first: Step[A], second: Then[A, B], third: Then[B, C], fourth: Then[C, D], /
) -> Chain[D]: ...
@overload
def chain(
    first: Step[A],
    second: Then[A, B],
    third: Then[B, C],
    fourth: Then[C, D],
    fifth: Then[D, E],
    /,
) -> Chain[E]: ...
@overload
def chain(
    first: Step[A],
    second: Then[A, B],
    third: Then[B, C],
    fourth: Then[C, D],
    fifth: Then[D, E],
    sixth: Then[E, F],
    /,
) -> Chain[F]: ...
@overload
def chain(first: AsyncStep[A], /) -> AsyncChain[A]: ...
@overload
def chain(first: AsyncStep[A], second: AsyncThen[A, B], /) -> AsyncChain[B]: ...
@overload
def chain(
    first: AsyncStep[A], second: AsyncThen[A, B], third: AsyncThen[B, C], /
) -> AsyncChain[C]: ...
@overload
def chain(
    first: AsyncStep[A],
    second: AsyncThen[A, B],
    third: AsyncThen[B, C],
    fourth: AsyncThen[C, D],
    /,
) -> AsyncChain[D]: ...
@overload
def chain(
    first: AsyncStep[A],
    second: AsyncThen[A, B],
    third: AsyncThen[B, C],
    fourth: AsyncThen[C, D],
    fifth: AsyncThen[D, E],
    /,
) -> AsyncChain[E]: ...
@overload
def chain(
    first: AsyncStep[A],
    second: AsyncThen[A, B],
    third: AsyncThen[B, C],
    fourth: AsyncThen[C, D],
    fifth: AsyncThen[D, E],
    sixth: AsyncThen[E, F],
    /,
) -> AsyncChain[F]: ...
def chain(first: Any, /, *more: Any) -> Any:
    """Return a chain of up to six steps; `a.s(1) | b.s() | …` has any number.

    A step runs when the one before it is done, and takes its result as its first
    argument, unless it has all of its arguments already. If a step fails, is given up,
    is cancelled or expires, the steps after it are cancelled.
    """
    is_sync = isinstance(first, Step)
    step, link = (Step, Link) if is_sync else (AsyncStep, AsyncLink)
    if not isinstance(first, step):
        raise ConfigurationError(
            f"a chain begins with a step, task.s(…), not with {first!r}; a group is"
            " followed by a step as in group(…) | task.s()"
        )
    plans = tuple(_next(one, step, link) for one in (first, *more))
    return Chain(None, plans) if is_sync else AsyncChain(None, plans)


@overload
def group(members: Iterable[Step[A]], /) -> Group[A]: ...
@overload
def group(*members: Step[A]) -> Group[A]: ...
@overload
def group(members: Iterable[AsyncStep[A]], /) -> AsyncGroup[A]: ...
@overload
def group(*members: AsyncStep[A]) -> AsyncGroup[A]: ...
def group(*members: Any) -> Any:
    """Return a group of steps, given one by one or as an iterable.

    It ends when all members have ended, in whatever way. The step after it, as in
    `group(…) | task.s()`, takes a list with a `MemberResult` for each.
    """
    steps = members
    if len(members) == 1 and not isinstance(members[0], _AnyStep):
        steps = tuple(members[0]) if isinstance(members[0], Iterable) else members
    is_sync = not steps or not isinstance(steps[0], AsyncStep)
    kind = Step if is_sync else AsyncStep
    for one in steps:
        if isinstance(one, _Composed):
            raise ConfigurationError(
                f"a group has single steps as members, not {one!r}: make it one task,"
                " or submit it from within a member"
            )
        if not isinstance(one, kind):
            raise ConfigurationError(
                f"each member of a group must be a step with all of its arguments,"
                f" task.s(…), not {one!r}"
            )
    plans = tuple(one._plan for one in steps)  # noqa: SLF001 - the same file
    return Group(plans, ()) if is_sync else AsyncGroup(plans, ())


def _handles(
    kind: type[H], ids: Sequence[str], plans: Sequence[PlannedStep]
) -> list[H]:
    return [
        kind(plan.internals, task_id, plan.result_type, True)
        for task_id, plan in zip(ids, plans, strict=True)
    ]


def _after_group(then: Any, *kinds: type[_AnyStep]) -> PlannedStep:
    plan = _next(then, *kinds)
    name, signature = plan.into, plan.definition.signature
    if name and not takes_members(signature.type_of(name)):
        raise ConfigurationError(
            f"task '{plan.definition.name}' follows a group, whose members may fail: so"
            f" '{name}' must be a list[MemberResult[…]], not"
            f" {_type_name(signature.type_of(name))}"
        )
    return plan


def _type_name(kind: Any) -> str:
    return kind.__name__ if type(kind) is type else str(kind)


def _next(then: Any, *kinds: type[_AnyStep]) -> PlannedStep:
    if isinstance(then, (Group, AsyncGroup, GroupChain, AsyncGroupChain)):
        raise ConfigurationError(
            f"a group cannot follow a step, as {then!r} would: submit it from within"
            " that step"
        )
    if isinstance(then, (Chain, AsyncChain)):
        raise ConfigurationError(
            f"what follows in a chain is one step, not {then!r}: write its steps one by"
            " one, as in a.s(1) | b.s() | c.s()"
        )
    if not isinstance(then, kinds):
        raise ConfigurationError(
            f"what follows in a chain is a step of the same kind of queue, task.s(…),"
            f" not {then!r}"
        )
    return then._plan  # noqa: SLF001 - the same file
