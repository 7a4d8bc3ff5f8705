"""No call reads or gives out more than some MiB of envelopes; the next one goes on.

Redis stands still while a script copies, and a reply is held in memory whole.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest

from workstealing.queue.brief_calls import brief_exchange
from workstealing.queue.pause_calls import count_paused, pause
from workstealing.queue.producer_calls import submit

LARGE = 512 * 1024
# Of four MiB that are read, and of the first few, which are read before any is known.
MOST = 4 * 1024 * 1024 + 8 * LARGE
FAIR = "1\tcustomer\t"


def put(queue: Any, *ids: str, name: str = "x", size: int = LARGE, **more: Any) -> None:
    written = f'{{"v":1,"name":"{name}","version":1,"payload":"{"." * size}"}}'
    tasks = [(task_id, written.encode()) for task_id in ids]
    queue.do(submit(queue.keys, queue.settings, tasks, priority=1, **more))


def names(number: int) -> list[str]:
    return [f"{n:02}" for n in range(number)]


def taken_in_turns(queue: Any, **more: Any) -> list[list[str]]:
    """Take until nothing is left; no turn is to be too large."""
    turns = []
    while tasks := queue.take("w", **more):
        assert sum(len(task.envelope) for task in tasks) <= MOST
        turns.append([task.id for task in tasks])
    return turns


@pytest.mark.parametrize("lines", [False, True], ids=["inbox", "line"])
def test_an_exchange_gives_out_no_more_than_some_mebibytes(
    queue: Any, lines: bool
) -> None:
    queue.join("w")
    for task_id in names(40):
        put(queue, task_id, lines=[FAIR] * lines)

    turns = taken_in_turns(queue)

    assert list(chain.from_iterable(turns)) == names(40)
    assert max(map(len, turns)) >= 4, "it does not crawl either"


def test_large_tasks_behind_small_ones_are_not_all_taken_with_them(queue: Any) -> None:
    queue.join("w")
    put(queue, *(f"s{n:02}" for n in range(20)), size=1)
    for task_id in names(200):
        put(queue, task_id, size=100 * 1024)

    tasks = queue.take("w", 500)

    # A stretch of a hundred at most is begun before the next look.
    assert sum(len(task.envelope) for task in tasks) <= 100 * 101 * 1024
    assert len(tasks) > 20


def test_of_a_deque_no_more_is_taken_either(queue: Any) -> None:
    queue.join("v", "w")
    for task_id in names(60):
        put(queue, task_id)
    first = [task.id for task in queue.take("w", 1, keep=29)]

    second = [task.id for task in queue.take("w", 29)]

    assert (first, second) == (["00"], names(9)[1:])
    assert queue.deque("w") == names(30)[9:]
    assert queue.state()["loads"] == {"w": 21}


def test_a_task_that_is_larger_than_that_is_given_out_alone(queue: Any) -> None:
    queue.join("w")
    put(queue, *names(8))
    put(queue, "large", size=5 * 1024 * 1024)
    put(queue, "next")

    queue.take("w")

    assert [task.id for task in queue.take("w", 1)] == ["large"]
    assert [task.id for task in queue.take("w")] == ["next"]


def test_a_worker_is_woken_for_what_an_exchange_has_left(queue: Any) -> None:
    queue.join("w")
    put(queue, *names(20))
    queue.client.delete(queue.keys.bell)

    queue.take("w")

    assert queue.client.llen(queue.keys.bell) == 1


def test_a_suspect_among_large_tasks_stays_alone(queue: Any) -> None:
    queue.join("w")
    put(queue, *names(20))
    queue.client.hset(queue.keys.history, "10", "0:1:0:")

    turns = []
    while tasks := queue.take("w"):
        turns.append([task.id for task in tasks])
        queue.report("w", "done", *tasks)

    assert list(chain.from_iterable(turns)) == names(20)
    assert ["10"] in turns


def test_permits_that_large_tasks_were_not_given_are_for_others(queue: Any) -> None:
    queue.join("w")
    lines, limits = ["1\t\t\tone=a"], {"one": "15"}
    for task_id in names(20):
        put(queue, task_id, lines=lines, limits=limits)

    turns = taken_in_turns(queue)

    assert list(chain.from_iterable(turns)) == names(15), (
        "the limit alone bounds what is taken"
    )


@pytest.mark.parametrize("lines", [False, True], ids=["inbox", "line"])
def test_paused_tasks_are_put_aside_some_mebibytes_at_a_time(
    queue: Any, lines: bool
) -> None:
    queue.join("w")
    for task_id in names(40):
        put(queue, task_id, lines=[FAIR] * lines)
    put(queue, "other", name="y", size=1)
    queue.do(pause(queue.keys, "x"))
    numbers, seen = [0], list[str]()

    while numbers[-1] < 40:
        queue.client.delete(queue.keys.bell)
        seen += [task.id for task in queue.take("w")]
        numbers.append(queue.do(count_paused(queue.keys, "x")))
        is_over = numbers[-1] == 40
        assert is_over or queue.client.llen(queue.keys.bell), "somebody goes on at once"
        assert 0 < (numbers[-1] - numbers[-2]) * LARGE <= MOST

    assert [*seen, *(task.id for task in queue.take("w"))] == ["other"]


def test_a_host_puts_paused_tasks_aside_some_mebibytes_at_a_time(queue: Any) -> None:
    put(queue, *names(40))
    put(queue, "other", name="y", size=1)
    queue.do(pause(queue.keys, "x"))
    numbers, seen = [0], list[str]()

    while not seen:
        call = brief_exchange(
            queue.keys, queue.settings, "brief-a.0", ("x@1", "y@1"), want=9
        )
        seen = [task.id for task in queue.do(call).tasks]
        numbers.append(queue.do(count_paused(queue.keys, "x")))
        assert (numbers[-1] - numbers[-2]) * LARGE <= MOST

    assert seen == ["other"], "which some of the others may still be in front of"
    assert numbers[-1] > 0


def test_a_host_reads_little_where_the_first_task_is_not_paused(alone: Any) -> None:
    put(alone, *names(99), size=1)
    alone.do(pause(alone.keys, "y"))
    alone.client.script_flush()
    before = copied(alone)

    call = brief_exchange(alone.keys, alone.settings, "brief-a.0", ("x@1",), want=1)
    assert len(alone.do(call).tasks) == 1

    assert copied(alone) - before <= 1


def test_ordinary_tasks_are_read_with_two_commands(alone: Any) -> None:
    alone.join("w")
    put(alone, *names(100), size=1)
    before = calls(alone)

    assert len(alone.take("w", 100)) == 100

    # Two more ask for their locks, and whether upkeep is due.
    assert (calls(alone) - before)["hmget"] <= 4


def calls(queue: Any) -> Counter[str]:
    """Return how often the server ran each command."""
    commands = queue.client.info("commandstats").items()
    return Counter({name[8:]: stats["calls"] for name, stats in commands})


def copied(queue: Any) -> int:
    """Return how often envelopes were read many at a time."""
    return calls(queue)["hmget"]
