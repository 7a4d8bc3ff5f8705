"""Tasks are looked at in stretches, and outcomes forgotten by id."""

from __future__ import annotations

from typing import Any

from workstealing.queue.listing_calls import ranked, scan_tasks
from workstealing.queue.producer_calls import forget
from workstealing.queue.worker_calls import park


def test_a_scan_meets_every_task_and_says_where_it_is(queue: Any) -> None:
    queue.join("w")
    queue.submit("run", "park", "die")
    taken = queue.take("w")
    queue.report("w", "dead", taken[2])
    queue.do(park(queue.keys, "w", taken[1], "x@1"))
    queue.submit("wait")
    queue.submit("later", delay_ms=60_000)
    met: dict[str, tuple[str, bool, bool, str]] = {}

    cursor = ""
    while cursor != "0":
        stretch = queue.again(scan_tasks(queue.keys, cursor or "0", count=2))
        cursor = stretch.cursor
        for one in stretch.tasks:
            met[one.id] = (one.worker, one.is_delayed, one.is_dead, one.needs)
            assert one.envelope == queue.envelope(one.id)

    assert met == {
        "run": ("w", False, False, ""),
        "park": ("", False, False, "x@1"),
        "die": ("", False, True, ""),
        "wait": ("", False, False, ""),
        "later": ("", True, False, ""),
    }


def test_outcomes_are_forgotten_but_those_of_dead_letters(queue: Any) -> None:
    queue.join("w")
    queue.submit("done", "dead", "kept")
    done, dead, kept = queue.take("w")
    queue.report("w", "done", done, kept)
    queue.report("w", "dead", dead)
    call = forget(queue.keys, ["done", "dead", "nobody"])

    assert queue.do(call) == 1
    assert queue.again(call) == 0
    assert sorted(queue.state()["done"]) == ["dead", "kept"]


def test_a_sorted_set_is_read_page_by_page(queue: Any) -> None:
    queue.submit("a", "b", "c", delay_ms=60_000)
    queue.client.zadd(queue.keys.later, {"a": 1, "b": 2, "c": 3})

    pages = [
        queue.do(ranked(queue.keys.later, most=2, first=first)) for first in (0, 2, 3)
    ]

    assert pages == [(("a", 1), ("b", 2)), (("c", 3),), ()]
