"""The envelope: readable, compact, forward compatible, and safe to read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing._checks import checked_task_name
from workstealing.errors import BadEnvelope, InvalidName, UnknownEnvelope
from workstealing.tasks.envelope import Envelope, EnvelopeTemplate

MILLISECONDS = st.integers(0, 2**53)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="{}@"))
PAYLOADS = st.dictionaries(TEXT, st.integers() | TEXT | st.lists(st.booleans())).map(
    lambda payload: msgspec.Raw(msgspec.json.encode(payload))
)
ENVELOPES = st.builds(
    Envelope,
    v=st.just(1),
    name=NAMES.map(lambda name: (name or "x")[:200]),
    version=st.integers(1, 2**31 - 1),
    priority=st.integers(0, 2),
    at=MILLISECONDS,
    retries=st.none() | st.integers(0, 2**31 - 1),
    timeout=st.none() | st.floats(0.001, 1e9),
    deadline=st.none() | MILLISECONDS,
    trace=TEXT,
    payload=PAYLOADS,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)
PLAIN: dict[str, Any] = {"v": 1, "name": "noop", "version": 1, "payload": {"n": 7}}


def test_an_ordinary_envelope_says_only_what_is_needed() -> None:
    envelope = Envelope(v=1, name="noop", version=1, payload=msgspec.Raw(b'{"n":7}'))

    assert envelope.encode() == b'{"v":1,"name":"noop","version":1,"payload":{"n":7}}'


@given(ENVELOPES)
def test_an_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    assert Envelope.read(envelope.encode()) == envelope


@given(ENVELOPES, st.lists(PAYLOADS, max_size=3))
def test_a_letterhead_writes_the_same_bytes_as_the_envelope_itself(
    envelope: Envelope, payloads: list[msgspec.Raw]
) -> None:
    letterhead = EnvelopeTemplate.of(envelope)

    for payload in (envelope.payload, *payloads):
        each = msgspec.structs.replace(envelope, payload=payload)
        assert letterhead.around(bytes(payload)) == each.encode()


def test_fields_that_a_reader_does_not_know_are_ignored() -> None:
    foreign = {"tenant": "ann", **PLAIN, "labels": ["red"], "seal": {"k": "x"}}

    assert Envelope.read(json.dumps(foreign).encode()) == Envelope.read(
        json.dumps(PLAIN).encode()
    )


def test_another_order_and_spaces_are_read_too() -> None:
    written = '\n{ "payload" : {"n": 7} ,\t"version": 1, "name":"noop", "v": 1 }\n'

    envelope = Envelope.read(written.encode())

    assert json.loads(bytes(envelope.payload)) == {"n": 7}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "1 to 200"),
        ({"name": "a b"}, "without spaces"),
        ({"name": "{a}"}, "without"),
        ({"version": 0}, "version"),
        ({"version": "1"}, "version"),
        ({"version": 2**40}, "version"),
        ({"payload": [1]}, "must be a JSON object"),
        ({"payload": None}, "must be a JSON object"),
        ({"payload": "{}"}, "must be a JSON object"),
        ({"priority": 3}, "priority"),
        ({"priority": -1}, "priority"),
        ({"at": -1}, "at"),
        ({"retries": -1}, "retries"),
        ({"timeout": 0}, "timeout"),
        ({"deadline": 1.5}, "deadline"),
        ({"deadline": 2**60}, "deadline"),
        ({"trace": 5}, "trace"),
        ({"v": None}, "v"),
        ({"v": "1"}, "v"),
        ({"v": True}, "v"),
    ],
)
def test_a_field_that_is_wrong_is_named(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadEnvelope, match=problem):
        Envelope.read(json.dumps({**PLAIN, **change}).encode())


@pytest.mark.parametrize("missing", ["v", "name", "version", "payload"])
def test_a_field_that_is_missing_is_named(missing: str) -> None:
    rest = {name: value for name, value in PLAIN.items() if name != missing}

    with pytest.raises(BadEnvelope, match=f"missing required field `{missing}`"):
        Envelope.read(json.dumps(rest).encode())


@pytest.mark.parametrize("version", [0, 2, -1, 2**70])
def test_another_format_version_is_told_apart_whatever_else_it_has(
    version: int,
) -> None:
    for rest in (PLAIN, {}, {"name": 5, "payload": []}):
        with pytest.raises(UnknownEnvelope, match=f"version {version} .* reads 1"):
            Envelope.read(json.dumps({**rest, "v": version}).encode())


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b'{"v":1,"name":"noop","version":1,"payload":{"n":7}',
        b'{"v":1,"name":"noop","version":1,"payload":{}}}',
        b'{"v":1,"name":"\xff","version":1,"payload":{}}',
        b'{"v":1,"name":"noop","version":1,"payload":' + b"[" * 100_000,
        b'{"v":' + b"9" * 10_000 + b"}",
    ],
    ids=range(9),
)
def test_what_is_no_envelope_is_refused(broken: bytes) -> None:
    with pytest.raises(BadEnvelope, match="not an envelope"):
        Envelope.read(broken)


@given(
    st.binary()
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(st.sampled_from([*PLAIN, "at", "priority"]), JSON).map(
        lambda change: json.dumps({**PLAIN, **change}).encode()
    )
)
def test_any_bytes_are_an_envelope_or_refused(written: bytes) -> None:
    try:
        envelope = Envelope.read(written)
    except (BadEnvelope, UnknownEnvelope):
        return
    assert Envelope.read(envelope.encode()) == envelope


@given(ENVELOPES, st.data())
def test_a_damaged_envelope_is_read_or_refused(
    envelope: Envelope, data: st.DataObject
) -> None:
    written = bytearray(envelope.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(
            st.integers(0, 255)
        )

    try:
        read = Envelope.read(bytes(written))
    except (BadEnvelope, UnknownEnvelope):
        return
    assert read.v == 1
    assert checked_task_name(read.name)


def test_a_refused_name_is_no_error_of_configuration_for_a_reader() -> None:
    with pytest.raises(BadEnvelope) as caught:
        Envelope.read(json.dumps({**PLAIN, "name": "a b"}).encode())

    assert isinstance(caught.value.__cause__, InvalidName)
