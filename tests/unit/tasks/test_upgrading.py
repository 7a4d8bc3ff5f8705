"""A new version of a task takes the payloads of older ones."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.errors import ConfigurationError, PayloadInvalid, UnknownTask
from workstealing.tasks.definition import TaskDefinition, define
from workstealing.tasks.registry import Registry


def scale(number: int, ratio: tuple[int, int], unit: str = "m") -> str:
    return f"{number * ratio[0] / ratio[1]:g} {unit}"


def with_factor(payload: dict[str, Any]) -> dict[str, Any]:
    return {"number": payload["n"], "factor": payload["f"]}


def with_ratio(payload: dict[str, Any]) -> dict[str, Any]:
    return {"number": payload["number"], "ratio": [payload["factor"], 1]}


def scale_3(**options: Any) -> TaskDefinition:
    options.setdefault("accepts", {2: with_ratio, 1: with_factor})
    return define(scale, "scale", 3, **options)


def test_its_own_version_is_read_as_it_is() -> None:
    arguments = scale_3().decode(3, b'{"number": 4, "ratio": [1, 2]}')

    assert arguments == {"number": 4, "ratio": (1, 2), "unit": "m"}


def test_an_older_payload_is_upgraded_step_by_step() -> None:
    definition = scale_3()

    wanted = {"number": 4, "ratio": (3, 1), "unit": "m"}
    assert definition.decode(2, b'{"number": 4, "factor": 3}') == wanted
    assert definition.decode(1, b'{"n": 4, "f": 3}') == wanted


def test_an_upgrade_may_pass_over_versions_that_nobody_accepts() -> None:
    definition = define(
        scale, "scale", 9, accepts={1: lambda p: with_ratio(with_factor(p))}
    )

    assert definition.decode(1, b'{"n": 4, "f": 3}')["ratio"] == (3, 1)


def test_what_an_upgrade_makes_is_checked() -> None:
    definition = scale_3(accepts={2: lambda payload: {**payload, "ratio": "wide"}})

    with pytest.raises(PayloadInvalid, match="argument 'ratio'"):
        definition.decode(2, b'{"number": 4}')


@pytest.mark.parametrize(
    ("upgrade", "words"),
    [
        (lambda payload: {"number": payload["missing"]}, "KeyError: 'missing'"),
        (lambda payload: None, "it returned NoneType"),
    ],
)
def test_an_upgrade_that_fails_says_which_and_why(upgrade: Any, words: str) -> None:
    definition = scale_3(accepts={2: upgrade})

    with pytest.raises(PayloadInvalid) as refused:
        definition.decode(2, b"{}")
    assert "cannot be upgraded from version 2" in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("accepts", "words"),
    [
        ([1, 2], "must be a dict"),
        ({3: with_ratio}, "version 3, which is not older"),
        ({4: with_ratio}, "version 4, which is not older"),
        ({0: with_ratio}, "an accepted version must be 1"),
        ({"1": with_ratio}, "must be a whole number"),
        ({1: "later"}, "must be a function"),
    ],
)
def test_accepts_is_checked_when_the_task_is_defined(accepts: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        scale_3(accepts=accepts)


def test_accepted_versions_are_announced_and_found() -> None:
    registry = Registry()
    definition = scale_3()
    registry.add(definition)

    assert registry.abilities() == ("scale@1", "scale@2", "scale@3")
    assert {registry.find("scale", version) for version in (1, 2, 3)} == {definition}
    with pytest.raises(UnknownTask, match="no version 4 here, only 1, 2, 3"):
        registry.find("scale", 4)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_version_of_its_own_goes_before_one_that_is_accepted(is_first: bool) -> None:
    registry = Registry()
    old, new = define(scale, "scale", 1), scale_3()
    for definition in (old, new) if is_first else (new, old):
        registry.add(definition)

    assert registry.find("scale", 1) is old
    assert registry.find("scale", 2) is new


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_that_accept_a_version_the_newer_runs_it(is_first: bool) -> None:
    registry = Registry()
    newer, newest = (
        define(scale, "scale", version, accepts={1: with_ratio}) for version in (3, 4)
    )
    for definition in (newer, newest) if is_first else (newest, newer):
        registry.add(definition)

    assert registry.find("scale", 1) is newest
