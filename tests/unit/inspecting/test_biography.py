"""The life of a task is told in order, and its stretches add up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.inspecting import Biography, FailedAttempt
from workstealing.inspecting.biography import biography_of


def told(*events: str, **more: Any) -> Biography:
    found = biography_of(events, **{"until_ms": 100_000, **more})
    assert found is not None
    return found


def test_a_task_that_was_stolen_and_whose_worker_died_is_told_in_order() -> None:
    life = told(
        "n1000",
        "s4500 w2 w1",
        "t4900 w2",
        "l19900 w2",
        "b20000",
        "t20100 w3",
        "e20350",
        ending="done",
        took_ms=200,
    )

    assert str(life) == (
        "waited 3.5 s in the inbox and the deque of w1; stolen by w2; 400 ms in the"
        " deque of w2; w2 died while running it; 15 s from its start until its lease"
        " had ended; 100 ms until it was given back; waited 100 ms in the inbox; held"
        " by w3 for 50 ms; ran 200 ms in w3; done. That is 19.4 s in all."
    )
    assert life.total_ms == 19_350
    assert life.is_whole


def test_attempts_say_why_they_failed_and_how_long_the_next_one_was_put_off() -> None:
    failures = [FailedAttempt(1, "w", 3000, 1900, "ValueError: no", "")]
    life = told(
        *("n1000", "t1100 w", "f3000 w", "q8000", "t8100 w"),
        failures=failures,
        until_ms=9100,
    )

    assert str(life) == (
        "waited 100 ms in the inbox; ran 1.9 s in w; failed: ValueError; waited 5 s"
        " for the next attempt; waited 100 ms in the inbox; runs in w for 1 s so far."
        " That is 8.1 s in all."
    )


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (("n1", "h2001 v"), "waited 2 s in the inbox and the deque of v; handed back"),
        (("t1 v", "h2001 v"), "held by v for 2 s; handed back by v"),
        (("n1", "p2001", "b5001"), "no worker could run it; parked for 3 s"),
        (("n1", "r2001"), "put aside, for its name was paused; resumed"),
        (("t1 v", "c2001", "e2501"), "ran 2 s in v; was asked to stop; 500 ms until"),
        (("t1 v", "d2001 v"), "v died while running it, and was replaced"),
        (("n1", "l15001 v", "b15002"), "of v; v died before it began it; 1 ms until"),
        (("t1 v", "z2001 v", "q4001"), "asked to be run again later; waited 2 s as"),
        (("n1", "q5001", "t5101 v"), "was not due for 5 s; waited 100 ms"),
        (("t1 v", "t2001 w"), "held by v for 2 s, which did not begin it"),
        (("n1", "~", "t9001 v"), "9 s of which nothing is kept; runs in v for"),
    ],
)
def test_each_thing_that_befalls_a_task_is_told(
    events: tuple[str, ...], words: str
) -> None:
    assert words in str(told(*events))


def test_a_producer_whose_clock_is_ahead_makes_no_negative_wait() -> None:
    life = told("n9000", "s4000 w v", "t4500 w", "e5000", ending="done")

    assert [one.took_ms for one in life.stretches] == [0, 500, 500]


def test_a_task_that_is_cancelled_before_it_is_due_did_not_wait_longer() -> None:
    life = told("t1000 w", "f2000 w", "q62000", "e5000", ending="cancelled")

    assert life.total_ms == 4000
    assert str(life).endswith(
        "waited 3 s for the next attempt; cancelled. That is 4 s in all."
    )


def test_of_an_ordinary_task_that_has_ended_only_its_run_is_known() -> None:
    life = told(taken_ms=1000, worker="w", until_ms=1200, ending="done", took_ms=200)

    assert str(life) == "ran 200 ms in w; done."
    assert not life.is_whole


def test_what_others_have_written_is_passed_over() -> None:
    assert str(told("x", "", "t", "snow", "t1000 w{0}", "e2000 ", ending="done")) == (
        "ran 1 s in w{0}; done."
    )


def test_nothing_is_told_of_a_task_of_which_nothing_is_known() -> None:
    assert biography_of((), until_ms=5) is None


@given(
    events=st.lists(
        st.tuples(st.sampled_from("nqtesfzhldbprc~"), st.integers(0, 10**6)), max_size=9
    ),
    until_ms=st.integers(0, 10**6),
)
def test_the_stretches_add_up_whatever_was_written(
    events: list[tuple[str, int]], until_ms: int
) -> None:
    noted = [letter if letter == "~" else f"{letter}{ms} w v" for letter, ms in events]
    life = biography_of(noted, until_ms=until_ms)

    if life is not None:
        assert all(one.took_ms >= 0 for one in life.stretches)
        known = [ms for letter, ms in events if letter != "~"]
        last = life.began_ms + life.total_ms
        assert last == max(life.began_ms, last) <= max([*known, until_ms])
        assert str(life)
