from __future__ import annotations

import math

import pytest

from workstealing.errors import ConfigurationError
from workstealing.jobs import XFetch
from workstealing.testing import ScriptedChance


@pytest.mark.parametrize(("left", "beta"), [(1.0, 1.0), (4.0, 1.0), (4.0, 2.0)])
def test_the_chance_grows_towards_the_end_as_published(
    left: float, beta: float
) -> None:
    rule = XFetch(beta=beta)

    assert rule.probability(left, 2.0, 100.0) == math.exp(-left / (beta * 2.0))


def test_what_has_expired_is_due_for_certain() -> None:
    assert XFetch().is_due(0.0, 1.0, 100.0, ScriptedChance())
    assert XFetch(beta=0.0).is_due(-1.0, 1.0, 100.0, ScriptedChance())


def test_nothing_is_refreshed_earlier_than_the_cap() -> None:
    rule = XFetch(cap=5.0)

    assert rule.probability(9.9, 2.0, 100.0) > 0.0
    assert rule.probability(10.0, 2.0, 100.0) == 0.0
    assert not rule.is_due(10.0, 2.0, 100.0, ScriptedChance())


def test_nothing_is_refreshed_in_the_first_half_of_its_life() -> None:
    slow = 1000.0

    assert XFetch().probability(50.0, slow, 100.0) == 0.0
    assert XFetch().probability(49.9, slow, 100.0) > 0.9


def test_a_draw_below_the_chance_refreshes() -> None:
    chance = math.exp(-1.0)

    assert XFetch().is_due(2.0, 2.0, 100.0, ScriptedChance(chance - 0.01))
    assert not XFetch().is_due(2.0, 2.0, 100.0, ScriptedChance(chance))


def test_beta_zero_refreshes_only_at_the_end() -> None:
    assert not XFetch(beta=0.0).is_due(0.1, 1000.0, 100.0, ScriptedChance())


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_numbers_that_make_no_sense_are_refused(wrong: float) -> None:
    with pytest.raises(ConfigurationError):
        XFetch(beta=wrong)
    with pytest.raises(ConfigurationError):
        XFetch(cap=wrong)
