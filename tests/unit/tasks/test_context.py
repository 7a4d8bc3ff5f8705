"""What a running task learns about itself, from its own and from other threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from workstealing.errors import StopWork
from workstealing.tasks.context import (
    ExecutionContext,
    control_of,
    current_context,
    enter,
    leave,
)


def _context() -> ExecutionContext:
    return ExecutionContext(
        "id1", "resize", 2, attempt=3, worker="main.0", queue="images"
    )


def test_a_context_says_which_task_this_is() -> None:
    context = _context()

    assert (context.id, context.name, context.version) == ("id1", "resize", 2)
    assert (context.attempt, context.worker, context.queue) == (3, "main.0", "images")
    assert repr(context) == "<ExecutionContext resize@2 id1 attempt 3 on main.0>"


def test_an_undisturbed_task_goes_on() -> None:
    context = _context()

    context.check()

    assert not context.cancelled
    assert not context.lease_lost


def test_a_cancelled_task_learns_it_from_another_thread() -> None:
    context = _context()

    def cancel() -> None:
        control_of(context).is_cancelled = True

    other = threading.Thread(target=cancel)
    other.start()
    other.join()

    assert context.cancelled
    assert not context.lease_lost
    with pytest.raises(StopWork, match="id1 was cancelled"):
        context.check()


def test_a_task_that_lost_its_lease_stops_for_that_reason() -> None:
    context = _context()
    control_of(context).is_cancelled = True
    control_of(context).is_lease_lost = True

    assert context.lease_lost
    with pytest.raises(StopWork, match=r"worker main\.0 lost its lease"):
        context.check()


def test_a_broad_except_does_not_swallow_the_request_to_stop() -> None:
    context = _context()
    control_of(context).is_cancelled = True

    def careless() -> None:
        try:
            context.check()
        except Exception:
            pytest.fail("swallowed")

    with pytest.raises(StopWork):
        careless()


def test_the_current_context_is_that_of_the_innermost_task() -> None:
    outer, inner = _context(), _context()

    assert current_context() is None
    outer_token = enter(outer)
    inner_token = enter(inner)
    assert current_context() is inner
    leave(inner_token)
    assert current_context() is outer
    leave(outer_token)
    assert current_context() is None


async def test_tasks_on_one_loop_each_have_their_own_context() -> None:
    both_inside = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

    async def run(context: ExecutionContext) -> bool:
        token = enter(context)
        if both_inside is not None:
            await both_inside.wait()
        else:
            await asyncio.sleep(0)
        mine = current_context() is context
        leave(token)
        return mine

    assert await asyncio.gather(run(_context()), run(_context())) == [True, True]
