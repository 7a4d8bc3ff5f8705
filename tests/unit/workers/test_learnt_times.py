"""How long something is expected to take."""

from __future__ import annotations

from workstealing.workers.learnt_times import LearntTimes


def test_a_long_time_is_believed_at_once_and_fades() -> None:
    times = LearntTimes()
    times.took("resize@1", 0.001, now=100.0)
    times.took("resize@1", 0.4, now=101.0)
    times.took("resize@1", 0.001, now=102.0)
    assert times.task("resize@1", 9.0, now=102.0) > 0.3
    assert times.task("resize@1", 9.0, now=200.0) < 0.001


def test_what_was_never_seen_is_unknown() -> None:
    assert LearntTimes().task("resize@1", 7.0, now=100.0) == 7.0


def test_an_exchange_is_expected_to_take_what_it_takes_on_average() -> None:
    times = LearntTimes()
    first = times.exchange(100.0)
    assert first > 0.0
    for _ in range(100):
        times.exchanged(0.01, now=100.0)
    assert 0.009 < times.exchange(100.0) <= 0.0101


def test_a_slow_moment_of_redis_is_forgotten_though_nobody_asks_it() -> None:
    times = LearntTimes()
    for _ in range(100):
        times.exchanged(0.045, now=100.0)
    assert times.exchange(100.0) > 0.04, "two of them do not fit into a slice"
    assert times.exchange(160.0) < 0.001
