"""Times and counts in words."""

from __future__ import annotations

import pytest

from workstealing.inspecting.wording import counted, moment, printable, span


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (119_999, "120 s"),
        (120_000, "2 min"),
        (3_600_000, "60 min"),
        (7_200_000, "2 h"),
        (7 * 86_400_000, "7 days"),
        (400 * 86_400_000, "400 days"),
    ],
)
def test_a_span_is_told_in_the_unit_that_a_person_would_take(
    ms: int, words: str
) -> None:
    assert span(ms) == words


def test_a_moment_is_told_in_utc_whatever_its_number() -> None:
    assert moment(1_700_000_000_999) == "2023-11-14 22:13:20Z"
    assert moment(10**18) == f"{10**18} ms after 1970"


def test_one_is_one_and_many_are_many() -> None:
    assert counted(1, "worker") == "1 worker"
    assert counted(2000, "worker") == "2,000 workers"
    assert counted(0, "task lives", "tasks live") == "0 tasks live"


def test_a_text_can_do_nothing_to_a_terminal_but_stand_there() -> None:
    assert printable("zwei\nZeilen, größer") == "zwei\nZeilen, größer"
    assert printable("\x1b[2Jgone\r") == "\\x1b[2Jgone\\r"
    assert printable("turned \u202e round") == "turned \\u202e round"
