"""What a caller may say of itself."""

from __future__ import annotations

import json
import logging
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from workstealing import ClientContext
from workstealing._checks import checked_seconds, checked_whole
from workstealing.client.task_log import LoggingChannel
from workstealing.errors import BadEnvelope, ConfigurationError
from workstealing.tasks.definition import define
from workstealing.tasks.envelope import LATEST_MS, Envelope
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.submission import SubmitOptions, envelope_without_payload


def noop() -> None: ...


def told(context: ClientContext) -> dict[str, Any]:
    """What of a context stands in an envelope."""
    envelope = envelope_without_payload(
        define(noop, "noop"), SubmitOptions(context=context), time_ns=time.time_ns
    )
    fields: dict[str, Any] = json.loads(envelope.encode())
    for name in ("v", "name", "version", "at", "payload"):
        del fields[name]
    return fields


def test_a_context_that_says_nothing_adds_nothing() -> None:
    assert told(ClientContext()) == {}


def test_a_context_travels_with_the_request() -> None:
    context = ClientContext(
        "ann",
        ["editor", "viewer"],
        logging=LoggingChannel.memory(),
        deadline=datetime(2040, 1, 1, tzinfo=timezone.utc),
        trace="00-aa-bb-01",
    )

    assert told(context) == {
        "principal": "ann",
        "roles": ["editor", "viewer"],
        "log": True,
        "deadline": 2_208_988_800_000,
        "trace": "00-aa-bb-01",
    }


@pytest.mark.parametrize("deadline", [90, 90.0, timedelta(seconds=90)])
def test_seconds_count_from_when_the_call_is_made(deadline: Any) -> None:
    assert ClientContext(deadline=deadline).deadline_ms(1_000) == 91_000


def test_a_set_of_roles_always_reads_the_same() -> None:
    assert ClientContext(roles={"b", "a", "c"}).roles == ("a", "b", "c")


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": 7},
        {"principal": "a\nb"},
        {"principal": "x" * 201},
        {"roles": "editor"},
        {"roles": 7},
        {"roles": ["a b"]},
        {"roles": ["a,b"]},
        {"roles": [""]},
        {"roles": ["x" * 101]},
        {"roles": [str(number) for number in range(65)]},
        {"trace": "x" * 513},
        {"logging": logging.getLogger()},
        {"deadline": 0},
        {"deadline": -1},
        {"deadline": "soon"},
        {"deadline": datetime(2040, 1, 1)},
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_said(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ClientContext(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": "x" * 201},
        {"roles": ["x" * 101]},
        {"roles": ["a"] * 65},
        {"roles": "editor"},
        {"expires": -1},
        {"log": "yes"},
    ],
)
def test_a_foreign_envelope_cannot_say_more(wrong: dict[str, Any]) -> None:
    envelope = {"v": 1, "name": "noop", "version": 1, "payload": {}, **wrong}

    with pytest.raises(BadEnvelope):
        Envelope.read(msgspec.json.encode(envelope))


@pytest.mark.parametrize("refusal", [("Unheard",), ("PayloadInvalid", "x"), ("", "")])
def test_a_refusal_that_this_release_does_not_know_is_a_dead_letter(
    refusal: tuple[str, ...],
) -> None:
    outcome = TaskOutcome(state="dead", reason="because", refusal=refusal)

    problem = TaskOutcome.read(outcome.encode()).problem("17")

    assert type(problem).__name__ == "TaskDead"
    assert "because" in str(problem)


@pytest.mark.parametrize("deadline", [1e300, 1e308, 10**18, timedelta.max])
def test_a_deadline_that_never_comes_is_the_latest_there_is(deadline: Any) -> None:
    fields = told(ClientContext(deadline=deadline))

    assert fields == {"deadline": LATEST_MS}
    envelope = {"v": 1, "name": "noop", "version": 1, "payload": {}, **fields}
    Envelope.read(msgspec.json.encode(envelope))


def test_the_last_moment_of_the_calendar_is_a_deadline_in_any_zone() -> None:
    west = timezone(timedelta(hours=-5))
    last = datetime.max.replace(tzinfo=west)

    assert told(ClientContext(deadline=last))["deadline"] > 253_402_300_000_000


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_that_nothing_can_hold_is_refused_as_such(digits: int) -> None:
    with pytest.raises(ConfigurationError, match="bits"):
        checked_seconds(10**digits, "timeout")
    with pytest.raises(ConfigurationError, match="bits"):
        checked_whole(10**digits, "limit", 1)
