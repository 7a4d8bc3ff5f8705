"""Two pools of one name: the later one works, the earlier one ends and says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workstealing.errors import PoolBroken
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

Pools = Callable[..., WorkerPool]


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_a_pool_whose_name_another_one_takes_ends_and_does_not_take_it_back(
    app: Any, pools: Pools, see: Any, kind: str
) -> None:
    former = pools(app.queue, 1, kind, name="twin")
    former.start()
    handles = [app.hold_later.submit(n) for n in range(3)]
    see.wait_for(1)
    later = pools(app.queue, 1, kind, name="twin")
    later.start()
    wait_until(lambda: later.stats().running, 30, "the later one to run a task")
    see.let_go()

    with pytest.raises(PoolBroken, match=r"joined as worker twin\.0.*own name"):
        former.wait(30)

    assert [handle.result(timeout=20) for handle in handles] == [1, 1, 1]
    counts = app.queue.counts()
    assert (counts.stats["done"], counts.dead, list(counts.leases)) == (
        3,
        0,
        ["twin.0"],
    )
    assert (former.stats().replaced, later.stats().lost_leases) == (0, 0)
