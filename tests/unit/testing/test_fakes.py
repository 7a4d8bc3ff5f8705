"""Time, chance and observation as a test wants them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workstealing.testing import ManualClock, RecordingObserver, ScriptedChance


def test_a_manual_clock_stands_still() -> None:
    clock = ManualClock(start=5.0)

    assert (clock.monotonic(), clock.monotonic()) == (5.0, 5.0)


def test_a_manual_clock_moves_when_told() -> None:
    clock = ManualClock()

    clock.advance(1.5)
    clock.advance(0)

    assert clock.monotonic() == 1.5


def test_a_manual_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="never goes back"):
        ManualClock().advance(-1)


def test_chance_follows_its_script() -> None:
    chance = ScriptedChance(0.25, 0.75)

    assert [chance.random(), chance.random()] == [0.25, 0.75]
    assert chance.left == 0


def test_a_draw_too_many_fails_the_test() -> None:
    chance = ScriptedChance(0.5)
    chance.random()

    with pytest.raises(AssertionError, match="all 1 scripted numbers were drawn"):
        chance.random()


@pytest.mark.parametrize("number", [1.0, -0.1, float("nan")])
def test_a_script_holds_only_numbers_that_chance_can_give(number: float) -> None:
    with pytest.raises(ValueError, match=r"below 1\.0"):
        ScriptedChance(number)


def test_an_observer_remembers_events_in_order() -> None:
    observer = RecordingObserver()

    for event in ("a", 1, "b"):
        observer.observe(event)

    assert observer.events == ["a", 1, "b"]
    assert observer.of(str) == ["a", "b"]


def test_importing_the_test_tools_imports_no_third_party() -> None:
    program = (
        "import sys, workstealing.testing;"
        "print({'redis', 'pytest', 'fakeredis'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"
