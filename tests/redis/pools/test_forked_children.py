"""A child that is forked beside an open pool leaves the parent's workers alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])

_SCRIPT = """
    import os
    import sys
    import warnings

    from workstealing import WorkerPool
    from workstealing.errors import PoolStopped
    from workstealing.testing import wait_until
    from APP import hold, notes, queue, who, NAME

    if __name__ == "__main__":
        # Python 3.12 warns of threads that the child lacks.
        warnings.simplefilter("ignore", DeprecationWarning)
        pool = WorkerPool(queue, 1, "{kind}", name="mill")
        pool.start()
        worker = who.submit().result(timeout=30)
        held = hold.submit(1)
        wait_until(lambda: notes.llen(NAME + ":ran"), 20, "a task that runs")
        child = os.fork()
        if child == 0:
            {child}
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        notes.set(NAME + ":go", 1)
        assert held.result(timeout=30) == 1
        assert who.submit().result(timeout=30) == worker
        assert pool.stats().replaced == 0
        assert pool.stop() == 0
"""


@each_kind
@pytest.mark.parametrize(
    "child",
    [
        "pass",
        "assert pool.stop(timeout=600.0) == 0",
        "pool.__exit__(None, None, None)",
    ],
)
def test_a_child_that_ends_leaves_the_pool_of_its_parent_alone(
    script: Callable[..., subprocess.Popen[str]], kind: str, child: str
) -> None:
    process = script(_SCRIPT.format(kind=kind, child=child))
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")


@each_kind
def test_in_a_child_a_pool_is_stopped_and_says_whose_it_is(
    script: Callable[..., subprocess.Popen[str]], kind: str
) -> None:
    child = """
            assert pool.stats().workers == 0
            for call in (pool.wait, pool.quiet, pool.start, lambda: pool.scale(2)):
                try:
                    call()
                except PoolStopped as error:
                    print(error)"""
    process = script(_SCRIPT.format(kind=kind, child=child))
    told, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")
    assert told.count("create a new one") == 4
    assert told.count("its workers belong to the parent") == 2


def test_a_pool_that_is_started_in_a_child_works_there(
    script: Callable[..., subprocess.Popen[str]],
) -> None:
    process = script(
        """
        import os

        from workstealing import WorkerPool
        from APP import queue, who

        pool = WorkerPool(queue, 1)
        child = os.fork()
        if child == 0:
            with pool:
                assert who.submit().result(timeout=30) == os.getpid()
        else:
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")
