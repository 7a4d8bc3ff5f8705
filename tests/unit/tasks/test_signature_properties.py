"""What a worker is called with equals what was submitted."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.errors import PayloadInvalid, ResultInvalid
from workstealing.tasks.signature import Signature, decode_result


class Shade(Enum):
    DARK = "dark"
    LIGHT = "light"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Address:
    street: str
    number: int | None = None


@dataclass
class Person:
    name: str
    born: date
    homes: list[Address] = field(default_factory=list)


class Span(msgspec.Struct, frozen=True):
    begin: datetime
    length: timedelta


class Spot(NamedTuple):
    x: float
    y: float


class Note(TypedDict):
    text: str
    spot: Spot


def scalars(a: int, b: float, c: str, d: bool, e: bytes, f: None) -> None: ...
def times(a: datetime, b: date, c: time, d: timedelta) -> None: ...
def special(a: UUID, b: Decimal, c: Shade, d: Level, e: Literal["x", "y"]) -> None: ...
def containers(
    a: list[int],
    b: dict[str, list[float]],
    c: set[str],
    d: tuple[int, str],
    e: dict[int, bytes],
    f: frozenset[Shade],
    g: tuple[UUID, ...],
) -> None: ...
def unions(a: int | str | None, b: float | None, c: Person | None) -> None: ...
def objects(a: Person, b: Span, c: Spot, d: Note, e: list[Person | None]) -> None: ...


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
ZONES = st.none() | st.integers(-1439, 1439).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES)
ADDRESSES = st.builds(Address, TEXT, st.none() | st.integers())
PEOPLE = st.builds(Person, TEXT, st.dates(), st.lists(ADDRESSES, max_size=3))
SPOTS = st.builds(Spot, FLOAT, FLOAT)
SPANS = st.builds(Span, MOMENTS, st.timedeltas())
NOTES = st.fixed_dictionaries({"text": TEXT, "spot": SPOTS})
SHADES = st.sampled_from(Shade)

CASES: list[tuple[Callable[..., None], st.SearchStrategy[tuple[Any, ...]]]] = [
    (
        scalars,
        st.tuples(st.integers(), FLOAT, TEXT, st.booleans(), st.binary(), st.none()),
    ),
    (
        times,
        st.tuples(MOMENTS, st.dates(), st.times(timezones=ZONES), st.timedeltas()),
    ),
    (
        special,
        st.tuples(
            st.uuids(),
            st.decimals(allow_nan=False),
            SHADES,
            st.sampled_from(Level),
            st.sampled_from(["x", "y"]),
        ),
    ),
    (
        containers,
        st.tuples(
            st.lists(st.integers()),
            st.dictionaries(TEXT, st.lists(FLOAT)),
            st.sets(TEXT),
            st.tuples(st.integers(), TEXT),
            st.dictionaries(st.integers(-(2**63), 2**63), st.binary()),
            st.frozensets(SHADES),
            st.lists(st.uuids()).map(tuple),
        ),
    ),
    (
        unions,
        st.tuples(
            st.none() | st.integers() | TEXT, st.none() | FLOAT, st.none() | PEOPLE
        ),
    ),
    (
        objects,
        st.tuples(
            PEOPLE, SPANS, SPOTS, NOTES, st.lists(st.none() | PEOPLE, max_size=3)
        ),
    ),
]

SIGNATURES = {function: Signature.of(function) for function, _ in CASES}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOAT | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("function", "values"), CASES, ids=[function.__name__ for function, _ in CASES]
)
def test_every_supported_value_arrives_equal_and_of_its_type(
    function: Callable[..., None], values: st.SearchStrategy[tuple[Any, ...]]
) -> None:
    signature = SIGNATURES[function]

    @given(values)
    def arrives(args: tuple[Any, ...]) -> None:
        payload = signature.encode(args, {})
        arrived = tuple(signature.decode(payload).values())

        assert arrived == args
        assert list(map(type, arrived)) == list(map(type, args))
        assert list(json.loads(payload)) == list(signature.parameters)

    arrives()


@given(JSON, JSON)
def test_every_json_value_passes_untyped(one: Any, other: Any) -> None:
    def untyped(a, b):  # type: ignore[no-untyped-def]
        pass

    signature = Signature.of(untyped)

    assert signature.decode(signature.encode((one, other), {})) == {
        "a": one,
        "b": other,
    }
    assert decode_result(signature.encode_result(one)) == one


@given(st.lists(JSON | st.binary(), max_size=8), st.dictionaries(TEXT, JSON))
def test_arguments_either_fit_or_are_refused(
    args: list[Any], kwargs: dict[str, Any]
) -> None:
    for signature in SIGNATURES.values():
        try:
            payload = signature.encode(args, kwargs)
        except PayloadInvalid:
            continue
        assert set(signature.decode(payload)) == set(signature.parameters)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_payload_or_refused(payload: bytes) -> None:
    for signature in SIGNATURES.values():
        with suppress(PayloadInvalid):
            signature.decode(payload)
        with suppress(ResultInvalid):
            decode_result(payload, signature.result_type)
