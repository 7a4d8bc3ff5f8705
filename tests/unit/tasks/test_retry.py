"""Whether a failed task is tried again, and when."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing.chance import SYSTEM_CHANCE
from workstealing.errors import ConfigurationError
from workstealing.tasks.retry import (
    GiveUp,
    NoRetry,
    Retry,
    RetryAfter,
    RetryPolicy,
    Snooze,
)


class Half:
    """A chance that always says one half."""

    def random(self) -> float:
        return 0.5


def test_the_wait_doubles_up_to_its_bound() -> None:
    policy = RetryPolicy(retries=6, initial_delay=1.0, max_delay=10.0)

    waits = [policy.verdict(OSError(), attempt, Half()) for attempt in range(1, 7)]

    assert waits == [RetryAfter(s) for s in (0.5, 1.0, 2.0, 4.0, 5.0, 5.0)]


@given(st.integers(1, 2**31 - 1), st.floats(0.001, 100.0), st.floats(100.0, 1e6))
def test_every_wait_is_within_its_bounds(
    attempt: int, initial: float, longest: float
) -> None:
    policy = RetryPolicy(retries=2**31 - 1, initial_delay=initial, max_delay=longest)

    verdict = policy.verdict(OSError(), attempt, SYSTEM_CHANCE)

    assert isinstance(verdict, RetryAfter)
    assert 0.0 <= verdict.seconds <= longest
    assert attempt > 1 or verdict.seconds <= initial


def test_a_task_with_three_retries_is_tried_four_times() -> None:
    policy = RetryPolicy(retries=3)

    verdicts = [policy.verdict(OSError(), attempt, Half()) for attempt in (1, 2, 3, 4)]

    assert [type(verdict) for verdict in verdicts] == [RetryAfter] * 3 + [NoRetry]
    assert verdicts[3] == NoRetry("failed in attempt 4, and the task has retries=3")


def test_without_retries_the_first_error_is_the_last() -> None:
    assert isinstance(RetryPolicy().verdict(OSError(), 1, Half()), NoRetry)


def test_errors_are_chosen_by_their_class() -> None:
    policy = RetryPolicy(
        retries=1, retry_on=(OSError, ValueError), give_up_on=(FileNotFoundError,)
    )

    assert isinstance(policy.verdict(OSError(), 1, Half()), RetryAfter)
    assert isinstance(policy.verdict(UnicodeError(), 1, Half()), RetryAfter)
    assert policy.verdict(KeyError(), 1, Half()) == NoRetry(
        "KeyError is not among retry_on"
    )
    assert policy.verdict(FileNotFoundError(), 1, Half()) == NoRetry(
        "FileNotFoundError is not tried again"
    )


def test_an_interrupt_is_not_tried_again_by_default() -> None:
    assert isinstance(
        RetryPolicy(retries=1).verdict(KeyboardInterrupt(), 1, Half()), NoRetry
    )


def test_a_task_may_ask_for_its_retry_whatever_the_classes() -> None:
    policy = RetryPolicy(retries=1, retry_on=(), give_up_on=(Exception,))

    assert policy.verdict(Retry(after=7), 1, Half()) == RetryAfter(7.0)
    assert policy.verdict(Retry(), 1, Half()) == RetryAfter(0.5)
    assert policy.verdict(Retry(after=7), 2, Half()) == NoRetry(
        "Retry was raised in attempt 2, and the task has retries=1"
    )


def test_a_retry_of_a_task_without_retries_says_why_it_is_given_up() -> None:
    assert RetryPolicy().verdict(Retry(after=1), 1, Half()) == NoRetry(
        "Retry was raised, but the task has retries=0"
    )


def test_the_delays_of_a_policy_may_be_timedeltas() -> None:
    given: Any = {"initial_delay": timedelta(seconds=2), "max_delay": 300}

    policy = RetryPolicy(3, **given)

    assert policy == RetryPolicy(3, initial_delay=2.0, max_delay=300.0)
    assert policy.verdict(ValueError(), 1, Half()) == RetryAfter(1.0)


def test_a_retry_says_when_and_why() -> None:
    retry = Retry(after=timedelta(minutes=1), reason="rate limit")

    assert retry.after == 60.0
    assert str(retry) == "try again in 60 s: rate limit"
    assert str(Retry()) == "try again later"
    assert pickle.loads(pickle.dumps(retry)).after == 60.0


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), "soon", True])
def test_a_retry_refuses_what_is_no_wait(after: Any) -> None:
    with pytest.raises(ConfigurationError, match="after must be"):
        Retry(after=after)


@pytest.mark.parametrize(
    "wrong",
    [
        {"retries": -1},
        {"retries": 1.5},
        {"retries": True},
        {"retries": 2**31},
        {"initial_delay": 0},
        {"initial_delay": float("nan")},
        {"initial_delay": 500.0},
        {"max_delay": float("inf")},
        {"max_delay": "long"},
        {"retry_on": OSError},
        {"retry_on": (OSError(),)},
        {"give_up_on": ["OSError"]},
        {"give_up_on": (int,)},
    ],
    ids=repr,
)
def test_a_policy_refuses_bad_input_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        RetryPolicy(**wrong)


def test_who_gives_up_is_not_tried_again_whatever_the_classes() -> None:
    policy = RetryPolicy(retries=5, retry_on=(GiveUp,))

    assert policy.verdict(GiveUp("gone"), 1, Half()) == NoRetry("GiveUp was raised")


def test_a_snooze_says_until_when_and_why() -> None:
    noon = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)

    assert str(Snooze(timedelta(minutes=1))) == "snooze for 60 s"
    assert (
        str(Snooze(noon, "closed")) == "snooze until 2030-01-01 12:00:00+00:00: closed"
    )
    assert Snooze(90).seconds(now=5.0) == 90.0
    assert Snooze(noon).seconds(now=noon.timestamp() - 7) == 7.0
    assert Snooze(noon).seconds(now=noon.timestamp() + 7) == 0.0


@pytest.mark.parametrize("error", [Snooze(3, "early"), GiveUp("gone")])
def test_what_a_task_raises_crosses_processes(error: Any) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert (str(copy), copy.reason) == (str(error), error.reason)


@pytest.mark.parametrize(
    "wrong", [-1, "noon", None, float("nan"), datetime(2030, 1, 1)]
)
def test_a_snooze_until_no_time_at_all_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="until"):
        Snooze(wrong)
