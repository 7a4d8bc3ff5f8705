"""Who may run a task that waits is said also if not every shard can be asked."""

from __future__ import annotations

from workstealing.errors import RedisUnavailable
from workstealing.inspecting.prospects import Surroundings, prospects_of
from workstealing.queue.inspection_calls import Trace
from workstealing.queue.keys import QueueKeys
from workstealing.queue.pause_calls import Pauses

SEEN = Trace(
    0, b"{}", "", "", b"", None, None, "", 0, 0, 0, False, "", False, Pauses(), ""
)


def test_a_shard_that_is_away_does_not_hide_what_is_known_of_a_task() -> None:
    here, away = QueueKeys("q", "default"), QueueKeys("q", "default", 1)
    flow = prospects_of(here, Surroundings("", [away]), "t0", SEEN, is_near=False)
    next(flow)
    flow.send(0)
    flow.throw(RedisUnavailable("away"))

    try:
        flow.send(False)
    except StopIteration as end:
        told = end.value

    assert told == [
        "No worker in its shard can run it now; another shard cannot be asked."
    ]
