"""Errors that cross from a worker to a caller keep what they carry."""

from __future__ import annotations

import copy
import pickle

import pytest

from workstealing.errors import (
    PayloadInvalid,
    PayloadTooLarge,
    ResultTimeout,
    StopWork,
    TaskCancelled,
    TaskDead,
    TaskFailed,
    WorkStealingError,
)

ERRORS = [
    PayloadInvalid("resize", "width", "is missing"),
    PayloadInvalid("resize", "", "is no object"),
    PayloadTooLarge("resize", 2_000_000, 1_048_576),
    TaskFailed("id1", "ValueError", "bad", "Traceback"),
    TaskDead("id1", "3 deaths", "Traceback"),
    TaskCancelled("id1"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle_and_a_copy(error: WorkStealingError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_a_payload_that_is_too_large_says_what_to_do() -> None:
    assert str(ERRORS[2]) == (
        "task 'resize': the payload has 2,000,000 bytes, but the limit is 1,048,576:"
        " store the data elsewhere and pass a reference to it"
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ERRORS[0], "task 'resize': argument 'width' is missing"),
        (
            PayloadInvalid("resize", "", "takes 2 positional arguments, not 3"),
            "task 'resize': the payload takes 2 positional arguments, not 3",
        ),
        (
            PayloadInvalid("resize", "", "cannot be upgraded from version 1: KeyError"),
            "task 'resize': the payload cannot be upgraded from version 1: KeyError",
        ),
        (
            PayloadInvalid("resize", "width", "Expected `int`, got `str`"),
            "task 'resize': argument 'width': Expected `int`, got `str`",
        ),
    ],
)
def test_what_is_wrong_with_a_payload_is_a_sentence(
    error: PayloadInvalid, text: str
) -> None:
    assert str(error) == text


def test_a_late_result_is_a_timeout() -> None:
    assert issubclass(ResultTimeout, TimeoutError)
    assert issubclass(ResultTimeout, WorkStealingError)


def test_a_request_to_stop_is_no_error() -> None:
    assert not issubclass(StopWork, Exception)
