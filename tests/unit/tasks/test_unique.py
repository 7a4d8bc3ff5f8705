"""What makes a task unique: its key, and what is refused at definition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from workstealing import Contract, TaskQueue, Unique
from workstealing.errors import ConfigurationError, KeyFailed, NotATask
from workstealing.tasks.definition import define
from workstealing.tasks.unique import unique_key


def bill(customer: int, month: str = "may", scale: float = 1.0) -> None:
    """Do nothing."""


@dataclass
class Bill:
    customer: int
    month: str = "may"


def key(by: Any, *args: Any, version: int = 1, **kwargs: Any) -> str:
    made = define(bill, "bill", version, unique=Unique(by=by))
    assert made.unique is not None
    payload = made.signature.encode(args, kwargs)
    return unique_key(made.unique, made.signature, payload)


def test_equal_arguments_have_one_key_however_they_are_given() -> None:
    same = [
        key("args", 7),
        key("args", 7, "may"),
        key("args", scale=1, month="may", customer=7),
        key("args", 7, version=2),
        key("args", 7, scale=1.0),
    ]

    assert len(set(same)) == 1
    assert same[0].startswith("bill:")
    assert same[0] != key("args", 8)


def test_only_what_is_named_counts() -> None:
    assert key("customer", 7, "may") == key("customer", 7, "june")
    assert key(["customer", "month"], 7) == key(("month", "customer"), 7, "may")
    assert key("customer", 7) != key("customer", 8)


def test_a_function_takes_the_arguments_that_it_names() -> None:
    def parity(customer: int) -> int:
        return customer % 2

    assert key(parity, 7) == key(parity, 9, "june") != key(parity, 8)
    assert key(lambda **all_: sorted(all_), 7) == key(lambda **all_: sorted(all_), 8)


def test_a_function_takes_a_payload_as_a_whole_whatever_its_name() -> None:
    unique = Unique(by=lambda payload: payload.customer)
    contract = Contract("bill", Bill, unique=unique)

    def implementation(wanted: Bill) -> None:
        """Do nothing."""

    made = contract.implemented_by(implementation)
    may, june = (
        unique_key(unique, made.signature, made.signature.encode_payload(one))
        for one in (Bill(7), Bill(7, "june"))
    )
    assert may == june


def test_a_contract_says_how_its_task_is_unique() -> None:
    contract = Contract("bill", Bill, unique=Unique(by="customer"))

    def implementation(wanted: Bill) -> None:
        """Do nothing."""

    made = contract.implemented_by(implementation)

    assert made.unique is contract.unique
    assert made.unique is not None
    may, june, other = (
        unique_key(made.unique, made.signature, made.signature.encode_payload(one))
        for one in (Bill(7), {"customer": 7, "month": "june"}, Bill(8))
    )
    assert may == june != other
    with pytest.raises(NotATask, match="its contract says how it is unique"):
        contract.implemented_by(implementation, unique=Unique())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"by": 7}, "by must be 'args', the name of an argument"),
        ({"by": ()}, "by must be 'args'"),
        ({"until": "ended"}, "until must be 'started', 'done' or seconds, not 'ended'"),
        ({"until": -1}, "until must be above 0 seconds"),
        ({"until": 0}, "until must be above 0 seconds"),
        ({"until": timedelta(days=400)}, "until must be above 0 seconds, and at most"),
        ({"until": True}, "until must be seconds, not True"),
        ({"on_conflict": "drop"}, "on_conflict must be 'keep', 'replace' or"),
        ({"debounce": 0}, "debounce must be above 0 seconds"),
        ({"debounce": 5, "until": "done"}, "debounce= means until='started' and"),
        ({"debounce": 5, "on_conflict": "keep"}, "debounce= means"),
        ({"debounce": 5, "longest": 4}, "longest=4 must not be shorter than debounce"),
        ({"longest": 4}, "longest= limits the wait of debounce=: give both"),
    ],
)
def test_what_makes_no_sense_is_refused(options: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Unique(**options)

    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        (
            "custommer",
            "which it does not have: it takes customer, month",
        ),
        (
            ["customer", "year"],
            "names the argument 'year', which it does not have",
        ),
        (
            lambda year: year,
            "names the argument 'year', which it does not have",
        ),
        (lambda customer, /: customer, "called with arguments by name"),
        (lambda *all_: all_, "called with arguments by name"),
        (dict.get, "called with arguments by name"),
    ],
)
def test_what_does_not_fit_the_arguments_is_refused_at_definition(
    by: Any, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        define(bill, "bill", unique=Unique(by=by))

    assert problem in str(caught.value)


def test_something_else_than_a_unique_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unique must be a Unique, such as"):
        define(bill, "bill", unique=True)  # type: ignore[arg-type]


def test_a_function_that_fails_is_told_when_the_task_is_submitted() -> None:
    def fails(customer: int) -> int:
        return 1 // customer

    with pytest.raises(KeyFailed, match="raised ZeroDivisionError: integer"):
        key(fails, 0)
    with pytest.raises(KeyFailed, match="returned None: return what tells"):
        key(lambda customer: None, 0)
    with pytest.raises(KeyFailed, match="no form in JSON: an object has"):
        key(lambda customer: object(), 0)


def test_again_is_about_a_task_that_can_be_named() -> None:
    queue = TaskQueue("nowhere", "redis://localhost:1")
    task = queue.task(name="bill")(bill)

    with pytest.raises(ConfigurationError, match="again=True is about a task that has"):
        task.options(again=True).submit(7)
    with pytest.raises(ConfigurationError, match="again must be True or False"):
        task.options(again="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="fair_weight= goes with fair_key="):
        task.options(fair_weight=3)


def test_a_debounced_task_takes_no_other_delay() -> None:
    queue = TaskQueue("nowhere", "redis://localhost:1")
    task = queue.task(name="bill", unique=Unique(debounce=5))(bill)

    with pytest.raises(ConfigurationError, match="debounce= says when task 'bill' is"):
        task.submit_in(3, 7)
