from __future__ import annotations

import random
import threading

import pytest

from workstealing.errors import ConfigurationError, UnknownWorker
from workstealing.pool.work_deques import WorkDeques
from workstealing.testing import ScriptedChance


def _filled(**items: str) -> WorkDeques[str]:
    deques: WorkDeques[str] = WorkDeques(items, chance=ScriptedChance(*[0.0] * 50))
    for worker, letters in items.items():
        for letter in letters:
            deques.push(worker, letter)
    return deques


def test_the_owner_takes_at_the_front() -> None:
    deques = _filled(a="123")

    assert [deques.take("a") for _ in range(4)] == ["1", "2", "3", None]


def test_a_thief_steals_at_the_back() -> None:
    deques = _filled(a="123", b="")

    loot = deques.steal("b")

    assert loot is not None
    assert (loot.victim, loot.item, loot.moved, loot.left) == ("a", "3", 0, 2)
    assert deques.stolen == 1


def test_a_thief_may_take_half_and_keeps_its_order() -> None:
    deques = _filled(a="12345", b="")

    loot = deques.steal("b", half=True)

    assert loot is not None
    assert (loot.item, loot.moved, loot.left) == ("3", 2, 2)
    assert [deques.take("b"), deques.take("b")] == ["4", "5"]
    assert deques.stolen == 3


def test_half_of_one_is_one() -> None:
    deques = _filled(a="1", b="")

    loot = deques.steal_from("a", "b", half=True)

    assert loot is not None
    assert (loot.item, loot.left) == ("1", 0)


def test_the_victim_is_drawn_among_those_who_have_something() -> None:
    deques: WorkDeques[int] = WorkDeques("abcd", chance=ScriptedChance(0.99, 0.0))
    deques.push("b", 1)
    deques.push("c", 2)

    first, second = deques.steal("a"), deques.steal("a")

    assert first is not None
    assert second is not None
    assert (first.victim, second.victim) == ("c", "b")


def test_the_victim_can_be_one_of_those_named_only() -> None:
    deques = _filled(a="1", b="2", c="")

    loot = deques.steal("c", among=["b"])

    assert loot is not None
    assert loot.victim == "b"
    assert deques.steal("c", among=["b"]) is None


def test_nobody_steals_from_oneself() -> None:
    deques = _filled(a="12")

    assert deques.steal("a") is None
    assert deques.is_idle("a") is False
    assert deques.in_flight("a") == 0


def test_items_are_spread_each_worker_in_turn() -> None:
    deques: WorkDeques[int] = WorkDeques("abc")

    for item in range(6):
        deques.spread(item)

    assert [deques.size(worker) for worker in "abc"] == [2, 2, 2]


def test_what_is_handed_back_is_the_next_to_be_taken() -> None:
    deques = _filled(a="12")
    taken = deques.take("a")
    assert taken is not None

    deques.hand_back("a", taken)

    assert deques.in_flight("a") == 0
    assert deques.take("a") == "1"


def test_all_idle_needs_empty_deques_and_nothing_in_flight() -> None:
    deques = _filled(a="1", b="")
    assert not deques.all_idle

    deques.take("a")
    assert deques.waiting == 0
    assert not deques.all_idle
    assert (deques.is_idle("a"), deques.is_idle("b")) == (False, True)

    deques.done("a")
    assert deques.all_idle


def test_done_and_take_are_one_step() -> None:
    deques = _filled(a="12")
    deques.take("a")

    assert deques.done_and_take("a") == "2"
    assert deques.in_flight("a") == 1
    assert deques.done_and_take("a") is None
    assert deques.all_idle


def test_the_items_of_a_worker_that_leaves_go_to_others() -> None:
    deques = _filled(a="123", b="", c="")

    assert deques.remove("a") == 3

    assert deques.workers == ("b", "c")
    assert deques.size("b") + deques.size("c") == 3


def test_one_that_left_with_something_in_flight_is_not_idle_until_done() -> None:
    deques = _filled(a="1", b="")
    deques.take("a")
    deques.remove("a")

    assert not deques.all_idle
    deques.done("a")
    assert deques.all_idle


def test_one_that_left_hands_back_to_others() -> None:
    deques = _filled(a="1", b="")
    taken = deques.take("a")
    assert taken is not None
    deques.remove("a")

    deques.hand_back("a", taken)

    assert deques.take("b") == "1"


def test_what_nobody_can_take_waits_for_the_next_to_come() -> None:
    deques = _filled(a="12")
    deques.remove("a")
    deques.spread("3")
    assert deques.waiting == 3
    assert not deques.all_idle

    deques.add("b")

    assert [deques.take("b") for _ in range(3)] == ["1", "2", "3"]


def test_an_item_can_be_dropped_wherever_it_waits() -> None:
    deques = _filled(a="12", b="3")

    assert deques.drop("3")
    assert not deques.drop("3")
    assert deques.waiting == 2
    deques.take("a")
    assert not deques.drop("1")


def test_all_that_waits_can_be_drained() -> None:
    deques = _filled(a="12", b="3")
    deques.take("a")

    assert deques.drain() == ["2", "3"]
    assert deques.waiting == 0
    assert not deques.all_idle
    deques.done("a")
    assert deques.all_idle


def test_an_unknown_worker_is_refused() -> None:
    deques = _filled(a="1")

    for call in (
        lambda: deques.push("x", "1"),
        lambda: deques.take("x"),
        lambda: deques.steal("x"),
        lambda: deques.steal("a", among=["x"]),
        lambda: deques.steal_from("x", "a"),
        lambda: deques.done("x"),
        lambda: deques.hand_back("x", "1"),
        lambda: deques.remove("x"),
        lambda: deques.size("x"),
    ):
        with pytest.raises(UnknownWorker, match="no worker 'x'"):
            call()


def test_a_name_is_given_once() -> None:
    deques = _filled(a="1")

    with pytest.raises(ConfigurationError, match="already joined"):
        deques.add("a")


def test_done_without_anything_in_flight_is_refused() -> None:
    deques = _filled(a="1")

    with pytest.raises(ConfigurationError, match="nothing in flight"):
        deques.done("a")
    with pytest.raises(ConfigurationError, match="nothing in flight"):
        deques.hand_back("a", "1")


def test_nothing_is_lost_and_nothing_given_twice_under_threads() -> None:
    deques: WorkDeques[int] = WorkDeques(range(4))
    seen: list[list[int]] = [[] for _ in range(8)]
    total = 4000
    is_over = threading.Event()

    def works(worker: int) -> None:
        chance = random.Random(worker)
        while not is_over.is_set():
            try:
                item = deques.take(worker)
                if item is None:
                    loot = deques.steal(worker, half=chance.random() < 0.5)
                    item = None if loot is None else loot.item
            except UnknownWorker:
                return
            if item is None:
                continue
            if chance.random() < 0.1:
                deques.hand_back(worker, item)
                continue
            seen[worker].append(item)
            deques.done(worker)

    threads = [threading.Thread(target=works, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for item in range(total):
        if item == total // 2:
            deques.remove(3)
        deques.spread(item)
    while not deques.all_idle:
        pass
    is_over.set()
    for thread in threads:
        thread.join(10)

    assert sorted(item for items in seen for item in items) == list(range(total))
