"""Numbers that a child writes and its parent reads."""

from __future__ import annotations

import multiprocessing

import pytest

from workstealing.workers.child_protocol import Counter, SharedCounters


def _write(counters: SharedCounters) -> None:
    counters[Counter.TAKEN] = 41
    counters[Counter.TICKED_AT] = 1.5


def test_new_counters_are_zero() -> None:
    counters = SharedCounters(multiprocessing.get_context("spawn"))

    assert [counters[counter] for counter in Counter] == [0.0] * len(Counter)


def test_each_counter_keeps_its_own_number() -> None:
    counters = SharedCounters(multiprocessing.get_context("spawn"))

    for counter in Counter:
        counters[counter] = counter + 0.5

    assert [counters[counter] for counter in Counter] == [
        counter + 0.5 for counter in Counter
    ]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_a_child_writes_its_parent_reads() -> None:
    context = multiprocessing.get_context("fork")
    counters = SharedCounters(context)

    child = context.Process(target=_write, args=(counters,))
    child.start()
    child.join(20)

    assert (counters[Counter.TAKEN], counters[Counter.TICKED_AT]) == (41.0, 1.5)
