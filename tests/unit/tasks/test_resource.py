"""Resources are asked for by type, and are no part of the payload."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NewType

import pytest

from workstealing import INJECTED, Contract, Registry, Resource, TaskQueue
from workstealing.errors import ConfigurationError, PayloadInvalid
from workstealing.tasks.definition import define
from workstealing.tasks.resource import define_resource
from workstealing.tasks.signature import Signature


class Database:
    pass


@dataclass
class Day:
    name: str


Replica = NewType("Replica", Database)


def report(
    db: Annotated[Database, Resource], day: str, spare: Annotated[Replica, Resource]
) -> str:
    return day


def database() -> Iterator[Database]:
    yield Database()


async def replica() -> AsyncIterator[Replica]:
    yield Replica(Database())


def test_a_resource_is_no_part_of_the_payload() -> None:
    signature = Signature.of(report)

    assert signature.encode(("monday",), {}) == b'{"day":"monday"}'
    assert signature.decode(b'{"day":"monday"}') == {"day": "monday"}
    assert dict(signature.resources) == {"db": Database, "spare": Replica}


def test_a_resource_cannot_be_given_in_a_payload() -> None:
    signature = Signature.of(report)

    with pytest.raises(PayloadInvalid, match="'db' is not known"):
        signature.encode(("monday",), {"db": Database()})
    with pytest.raises(PayloadInvalid, match="'db' is not known"):
        signature.decode(b'{"day":"monday","db":1}')


def test_a_default_does_not_matter_to_workers() -> None:
    def with_none(db: Annotated[Database, Resource] = None) -> None: ...  # type: ignore[assignment]
    def injected(db: Annotated[Database, Resource] = INJECTED) -> None: ...

    assert dict(Signature.of(with_none).resources) == {"db": Database}
    assert dict(Signature.of(injected).resources) == {"db": Database}


def test_what_is_annotated_otherwise_is_an_argument() -> None:
    def plain(a: Annotated[int, "metres"], b: int | None = None) -> None: ...

    assert Signature.of(plain).parameters == ("a", "b")


def test_an_implementation_of_a_contract_may_ask_for_resources() -> None:
    def write(payload: Day, db: Annotated[Database, Resource]) -> None: ...

    definition = Contract("report", payload=Day).implemented_by(write)

    assert dict(definition.signature.resources) == {"db": Database}


def test_editors_are_not_shown_what_workers_fill_in() -> None:
    queue = TaskQueue("q", "redis://nowhere:1")
    task = queue.task(report)

    assert list(inspect.signature(task.submit).parameters) == ["day"]


def test_a_task_that_is_called_directly_takes_what_it_is_given() -> None:
    queue = TaskQueue("q", "redis://nowhere:1")
    task = queue.task(report)

    assert task(Database(), "monday", Replica(Database())) == "monday"


def test_a_resource_that_nobody_filled_in_says_so_when_it_is_used() -> None:
    def count(db: Annotated[Any, Resource] = INJECTED) -> int:
        return int(db.count())

    with pytest.raises(ConfigurationError, match="pass the resource as an argument"):
        count()
    assert repr(INJECTED) == "INJECTED"
    assert not hasattr(INJECTED, "__len__")


def test_resources_are_kept_in_order_and_once() -> None:
    registry, other = Registry(), Registry()
    other.resource(database)
    registry.resource(replica)
    registry.include(other)
    registry.include(other)

    assert [one.name for one in registry.resources()] == ["replica", "database"]
    assert [one.type for one in registry.resources()] == [Replica, Database]


def test_a_context_manager_is_taken_as_it_was_written() -> None:
    assert define_resource(contextmanager(database)).type is Database


def test_two_resources_of_one_type_are_refused() -> None:
    def another() -> Iterator[Database]:
        yield Database()

    registry = Registry()
    registry.resource(database)

    with pytest.raises(ConfigurationError, match="'database' and 'another' yield"):
        registry.resource(another)


def test_a_task_that_asks_for_what_nobody_yields_is_refused() -> None:
    registry = Registry()
    registry.add(define(report, "report"))
    registry.resource(database)

    with pytest.raises(ConfigurationError, match=r"'report' asks for .*Replica"):
        registry.resources()


def _plain() -> Database:
    return Database()


def _unannotated():  # type: ignore[no-untyped-def]
    yield 1


def _with_parameter(url: str) -> Iterator[Database]:
    yield Database()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_plain, "must be a generator function"),
        (_unannotated, "annotated with what it yields"),
        (_with_parameter, "'url' has no default"),
    ],
)
def test_what_is_no_resource_is_refused_with_the_reason(
    function: Any, problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Registry().resource(function)
