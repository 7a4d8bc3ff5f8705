"""Where a queue is defined, so that a child can import it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.errors import ConfigurationError
from workstealing.workers.queue_location import QueueLocation, location_of


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("shop_of_this_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_a_global_of_a_module_is_found_there(module: Any) -> None:
    module.orders = TaskQueue("orders", "redis://nowhere")

    place = location_of(module.orders)

    assert place == QueueLocation("shop_of_this_test", "orders")
    assert place.find() is module.orders


def test_a_queue_that_is_no_global_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="make it a global of a module"):
        location_of(TaskQueue("orders", "redis://nowhere"))


def test_what_was_typed_into_an_interpreter_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main: Any = ModuleType("__main__")
    main.orders = TaskQueue("orders", "redis://nowhere")
    monkeypatch.setitem(sys.modules, "__main__", main)

    with pytest.raises(ConfigurationError, match="typed into an interpreter"):
        location_of(main.orders)


def test_odd_things_among_the_modules_are_passed_over(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module.orders = TaskQueue("orders", "redis://nowhere")
    monkeypatch.setitem(sys.modules, "an_odd_thing_with_a_long_name", object())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "a_missing_thing_with_a_long_name", None)  # type: ignore[arg-type]

    assert location_of(module.orders).module == "shop_of_this_test"


def test_a_child_imports_what_it_does_not_have_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stall_of_this_test.py").write_text(
        "from workstealing import TaskQueue\nqueue = TaskQueue('stall', 'redis://x')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    found = QueueLocation("stall_of_this_test", "queue").find()

    assert found.name == "stall"
    del sys.modules["stall_of_this_test"]
