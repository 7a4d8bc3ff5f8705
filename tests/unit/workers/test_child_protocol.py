"""Numbers that a child writes and its parent reads."""

from __future__ import annotations

import multiprocessing

import pytest

from workstealing.workers.child_protocol import ChildNumber, ChildNumbers


def _write(numbers: ChildNumbers) -> None:
    numbers[ChildNumber.TAKEN] = 41
    numbers[ChildNumber.TICKED_AT] = 1.5


def test_new_counters_are_zero() -> None:
    numbers = ChildNumbers(multiprocessing.get_context("spawn"))

    assert [numbers[which] for which in ChildNumber] == [0.0] * len(ChildNumber)


def test_each_counter_keeps_its_own_number() -> None:
    numbers = ChildNumbers(multiprocessing.get_context("spawn"))

    for which in ChildNumber:
        numbers[which] = which + 0.5

    assert [numbers[which] for which in ChildNumber] == [
        which + 0.5 for which in ChildNumber
    ]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_a_child_writes_its_parent_reads() -> None:
    context = multiprocessing.get_context("fork")
    numbers = ChildNumbers(context)

    child = context.Process(target=_write, args=(numbers,))
    child.start()
    child.join(20)

    assert (numbers[ChildNumber.TAKEN], numbers[ChildNumber.TICKED_AT]) == (41.0, 1.5)
