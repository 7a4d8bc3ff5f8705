"""Bad input gets a clear error when a job is installed."""

from __future__ import annotations

import functools
import pickle
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import Mock
from xmlrpc.client import ServerProxy

import pytest

from workstealing import AsyncRecruiter, Breaker, Duty, Recruiter, StoreGate
from workstealing.errors import (
    AmbiguousPace,
    ConfigurationError,
    CoroutineJob,
    DuplicateJob,
    InvalidInterval,
    InvalidRate,
    MissingExtra,
    NotAJob,
    RateExceeded,
    UnknownJob,
)


def work() -> None: ...


@pytest.mark.parametrize(
    "rate", ["0.1", True, float("nan"), -0.1, 1.1, float("inf"), 1j, Decimal("0.5")]
)
def test_a_rate_that_is_no_number_from_zero_to_one_is_refused(rate: object) -> None:
    with pytest.raises(InvalidRate, match=r"0\.0 to 1\.0"):
        Recruiter().install(work, "job", rate=rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0, 1, 0.5, Fraction(1, 3)])
def test_any_real_number_from_zero_to_one_is_a_rate(rate: float) -> None:
    recruiter = Recruiter()
    recruiter.install(work, "job", rate=rate)

    assert recruiter.stats().jobs["job"].rate == float(rate)


@pytest.mark.parametrize("every", [0, -1.0, float("nan"), float("inf"), "5", True])
def test_an_interval_that_is_not_above_zero_is_refused(every: object) -> None:
    with pytest.raises(InvalidInterval, match="every="):
        Recruiter().install(work, "job", every=every)  # type: ignore[arg-type]


def test_an_interval_may_be_a_timedelta() -> None:
    recruiter = Recruiter()
    recruiter.install(work, "job", every=timedelta(minutes=1))

    assert recruiter.stats().jobs["job"].every == 60.0


def test_rates_that_exceed_one_together_are_refused_and_change_nothing() -> None:
    recruiter = Recruiter()
    recruiter.install(work, "most", rate=0.9)

    with pytest.raises(RateExceeded, match="lower a rate"):
        recruiter.install(work, "rest", rate=0.2)
    with pytest.raises(RateExceeded):
        recruiter.install(work, "rest", rate=0.1 + 1e-6)

    assert list(recruiter.stats().jobs) == ["most"]


def test_rates_that_exceed_one_only_by_rounding_are_accepted() -> None:
    recruiter = Recruiter()
    for index in range(10):
        recruiter.install(work, f"job-{index}", rate=0.1)

    assert len(recruiter.stats().jobs) == 10


def test_raising_a_rate_too_far_is_refused_and_keeps_the_old_one() -> None:
    recruiter = Recruiter()
    recruiter.install(work, "a", rate=0.5)
    recruiter.install(work, "b", rate=0.5)

    with pytest.raises(RateExceeded):
        recruiter.set_rate("a", 0.6)

    assert recruiter.stats().jobs["a"].rate == 0.5


@pytest.mark.parametrize("paces", [{}, {"rate": 0.1, "every": 5.0}])
def test_both_or_none_of_rate_and_every_is_refused(paces: dict[str, float]) -> None:
    with pytest.raises(AmbiguousPace, match=r"rate=.*every="):
        Recruiter().install(work, "job", **paces)


def test_a_name_is_used_once() -> None:
    recruiter = Recruiter()
    recruiter.install(work, "job", rate=0.1)

    with pytest.raises(DuplicateJob, match="another name"):
        recruiter.install(work, "job", rate=0.1)


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "{x}", 7, None, "x" * 200])
def test_a_name_that_metrics_could_not_carry_is_refused(name: object) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        Recruiter().install(work, name, rate=0.1)  # type: ignore[arg-type]


class NotWorking:
    pass


@pytest.mark.parametrize("job", [NotWorking(), 5, None, "job", NotWorking])
def test_an_object_without_recruited_is_refused(job: object) -> None:
    with pytest.raises(NotAJob, match=r"recruited\(\)"):
        Recruiter().install(job, "job", rate=0.1)


async def coroutine_job() -> None: ...


class CoroutineRecruit:
    async def recruited(self) -> Duty:
        return Duty.RECRUITED


class CoroutineCallable:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "job",
    [
        coroutine_job,
        CoroutineRecruit(),
        CoroutineCallable(),
        functools.partial(coroutine_job),
    ],
)
async def test_a_coroutine_job_is_refused_by_a_recruiter_that_cannot_await(
    job: object,
) -> None:
    with pytest.raises(CoroutineJob, match="AsyncRecruiter"):
        Recruiter().install(job, "job", rate=1.0)

    recruiter = AsyncRecruiter(share=None)
    recruiter.install(job, "job", rate=1.0)
    assert await recruiter.enlist() is Duty.RECRUITED


def test_an_unknown_job_is_named_with_those_that_exist() -> None:
    recruiter = Recruiter()
    recruiter.install(work, "known", rate=0.1)

    with pytest.raises(UnknownJob, match=r"'unknown'.*known"):
        recruiter.uninstall("unknown")
    with pytest.raises(UnknownJob):
        recruiter.set_rate("unknown", 0.1)
    with pytest.raises(UnknownJob):
        recruiter.run_now("unknown")


@pytest.mark.parametrize(
    "options",
    [
        {"deadline": 0.0},
        {"deadline": float("nan")},
        {"share": 0.0},
        {"share": 1.5},
    ],
)
def test_protections_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        Recruiter(**options)  # type: ignore[arg-type]


def test_breakers_and_gates_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="first"):
        Breaker(10.0, 1.0)
    with pytest.raises(ConfigurationError, match="tolerance"):
        StoreGate(tolerance=0.5)


def test_an_object_with_recruited_is_a_job() -> None:
    class Sweeper:
        swept = 0

        def recruited(self) -> Duty:
            self.swept += 1
            return Duty.RECRUITED

    sweeper = Sweeper()
    recruiter = Recruiter(share=None)
    recruiter.install(sweeper, "sweeper", rate=1.0)

    assert recruiter.enlist() is Duty.RECRUITED
    assert sweeper.swept == 1


def test_the_master_is_one_per_process_and_kind() -> None:
    assert Recruiter.master() is Recruiter.master()
    assert AsyncRecruiter.master() is AsyncRecruiter.master()
    assert isinstance(AsyncRecruiter.master(), AsyncRecruiter)


def test_an_object_that_answers_every_attribute_is_a_job() -> None:
    recruiter = Recruiter(share=None)
    recruiter.install(Mock(return_value=None, spec=[]), "mock", rate=0.5)
    recruiter.install(ServerProxy("http://localhost:1").cleanup, "remote", rate=0.5)

    assert len(recruiter.stats().jobs) == 2


@pytest.mark.parametrize("paces", [{"rate": 10**400}, {"every": 10**400}])
def test_numbers_beyond_all_measure_are_refused(paces: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        Recruiter().install(work, "job", **paces)


def test_the_smallest_rate_is_a_rate() -> None:
    recruiter = Recruiter()
    recruiter.install(work, "job", rate=5e-324)

    assert recruiter.enlist() is Duty.DISMISSED
    assert (recruiter.stats().calls, recruiter.stats().faults) == (1, 0)


@pytest.mark.parametrize(
    "options",
    [{"deadline": "x"}, {"share": "x"}, {"breaker": 5}, {"gate": 5}],
)
def test_protections_of_another_kind_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Recruiter(**options)  # type: ignore[arg-type]


def test_a_target_is_named_by_a_string() -> None:
    with pytest.raises(ConfigurationError, match="target"):
        Recruiter().install(work, "job", rate=0.1, target=["a"])  # type: ignore[arg-type]


def test_errors_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(MissingExtra("click", "cli")))

    assert str(copy) == str(MissingExtra("click", "cli"))


@pytest.mark.parametrize("kind", [Recruiter, AsyncRecruiter])
def test_a_job_decorated_without_parentheses_is_told_what_to_write(
    kind: type[Recruiter | AsyncRecruiter],
) -> None:
    recruiter: Any = kind()

    with pytest.raises(ConfigurationError, match=r"@recruiter\.job\(rate=0\.001\)"):

        @recruiter.job
        def sweep() -> None: ...

    assert not recruiter.stats().jobs


@pytest.mark.parametrize("kind", [Recruiter, AsyncRecruiter])
def test_a_recruiter_offers_its_users_nothing_but_what_they_call(
    kind: type[Recruiter] | type[AsyncRecruiter],
) -> None:
    public = {name for name in dir(kind()) if not name.startswith("_")}

    assert public == {
        *("install", "job", "uninstall", "set_rate", "setup", "load", "load_plugins"),
        *("enlist", "enlisting", "enlists", "hook", "would_dismiss", "skip"),
        *("run_now", "ticker", "stats", "publish", "master"),
    }
