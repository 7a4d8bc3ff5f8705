"""Definitions of tasks, and the registry that holds them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from workstealing.errors import (
    ConfigurationError,
    DuplicateTask,
    InvalidName,
    NotATask,
    UnknownTask,
)
from workstealing.tasks.definition import define
from workstealing.tasks.registry import Registry
from workstealing.tasks.retry import RetryPolicy


def resize(path: str) -> None: ...
async def fetch(url: str) -> None: ...
def numbers() -> Iterator[int]:
    yield 1


async def later() -> AsyncIterator[int]:
    yield 1


def test_a_function_becomes_a_task_with_ordinary_settings() -> None:
    task = define(resize, "images.resize")

    assert (task.name, task.version, task.ability) == (
        "images.resize",
        1,
        "images.resize@1",
    )
    assert task.retry == RetryPolicy()
    assert (task.timeout, task.priority, task.is_coroutine) == (None, 1, False)
    assert task.signature.task == "images.resize"
    assert define(fetch).is_coroutine


def test_settings_are_kept() -> None:
    task = define(
        resize,
        version=3,
        retries=2,
        retry_on=(OSError,),
        give_up_on=(FileNotFoundError,),
        timeout=timedelta(minutes=1),
        priority=0,
    )

    assert (task.version, task.timeout, task.priority) == (3, 60.0, 0)
    assert task.retry == RetryPolicy(
        2, retry_on=(OSError,), give_up_on=(FileNotFoundError,)
    )


def test_a_policy_of_its_own_may_stand_for_the_number_of_retries() -> None:
    policy = RetryPolicy(retries=9, initial_delay=0.1)

    assert define(resize, retries=policy).retry is policy


def test_a_task_is_named_after_its_module_and_function() -> None:
    def inner() -> None: ...

    assert define(resize).name == f"{__name__}.resize"
    assert define(inner).name == f"{__name__}.inner"
    assert define(Registry().abilities, "named").name == "named"


def test_a_script_names_its_tasks_as_if_it_were_imported(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from workstealing.tasks.definition import define\n"
        "def sell() -> None: ...\n"
        "print(define(sell).name)\n"
    )

    for arguments in (["shop.py"], ["-m", "shop"], ["-c", "import shop"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        )
        assert done.stdout == "shop.sell\n"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (5, "a task is a function"),
        (Registry, "a task is a function"),
        (numbers, "numbers is a generator"),
        (later, "later is a generator"),
        (lambda: None, "give name="),
    ],
)
def test_what_is_no_plain_function_is_refused(function: Any, message: str) -> None:
    with pytest.raises(NotATask, match=message):
        define(function)


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"retries": -1},
        {"timeout": 0},
        {"timeout": "long"},
        {"priority": 3},
        {"priority": -1},
        {"retry_on": OSError},
    ],
    ids=repr,
)
def test_bad_settings_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        define(resize, **wrong)


@pytest.mark.parametrize(
    "useless",
    [
        {"retry_on": (OSError,)},
        {"give_up_on": (OSError,)},
        {"retries": RetryPolicy(retry_on=(OSError,))},
    ],
    ids=repr,
)
def test_rules_for_retries_are_refused_where_there_are_none(
    useless: dict[str, Any],
) -> None:
    with pytest.raises(ConfigurationError, match="add retries=3, for example"):
        define(resize, **useless)


def test_a_bad_name_is_refused() -> None:
    with pytest.raises(InvalidName, match="the name of a task"):
        define(resize, "re size")


def test_a_registry_finds_each_version_of_a_task() -> None:
    registry = Registry()
    one, two = define(resize, "resize"), define(resize, "resize", 2)
    registry.add(two)
    registry.add(one)

    assert registry.find("resize", 1) is one
    assert registry.find("resize", 2) is two
    assert registry.abilities() == ("resize@1", "resize@2")
    assert (len(registry), set(registry)) == (2, {one, two})


def test_a_name_and_version_can_be_taken_once() -> None:
    registry = Registry()
    first = define(resize, "resize")
    registry.add(first)

    with pytest.raises(DuplicateTask, match=r"resize@1 exists already.*version="):
        registry.add(define(fetch, "resize"))

    assert registry.find("resize", 1) is first


def test_what_is_not_registered_is_unknown_and_the_message_says_what_is() -> None:
    registry = Registry()
    registry.add(define(resize, "resize", 2))

    with pytest.raises(UnknownTask, match="no version 1 here, only 2"):
        registry.find("resize", 1)
    with pytest.raises(UnknownTask, match="no task 'sell' here: import"):
        registry.find("sell", 1)
