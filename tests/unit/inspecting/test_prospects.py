"""Who may run a task that waits is said also if not every shard can be asked."""

from __future__ import annotations

from workstealing.errors import RedisUnavailable
from workstealing.inspecting.prospects import prospects_of
from workstealing.queue.keys import QueueKeys


def test_a_shard_that_is_away_does_not_hide_what_is_known_of_a_task() -> None:
    here, away = QueueKeys("q", "default"), QueueKeys("q", "default", 1)
    flow = prospects_of(here, [away], "add@1", 0)
    next(flow)
    flow.send(0)
    flow.send(0)

    try:
        flow.throw(RedisUnavailable("away"))
    except StopIteration as end:
        told = end.value

    assert told == [
        "No worker in its shard can run it now; another shard cannot be asked."
    ]
