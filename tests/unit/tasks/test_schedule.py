"""When schedules tick: cron, intervals, the change of the clocks, missed ticks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing._checks import checked_id
from workstealing.errors import ConfigurationError
from workstealing.tasks.schedule import (
    LATE_MS,
    MOST_MISSED,
    PROMPT_MS,
    checked_schedule_name,
    checked_timing,
    due_ticks,
    jitter_of,
    tick_id,
)
from workstealing.tasks.schedule_definition import (
    ScheduleDefinition,
    checked_jitter,
    checked_missed,
)

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = 60_000
DAY = 86_400_000
START = 1_767_225_600_000  # 2026-01-01
moments = st.integers(START, START + 400 * DAY)
crons = st.sampled_from(
    ["* * * * *", "*/5 * * * *", "30 2 * * *", "0 */6 * * *", "15 3 * * 1", "0 0 L * *"]
)
zones = st.sampled_from(
    [
        *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"),
        "Australia/Lord_Howe",
    ]
)
timings = st.one_of(
    st.builds(checked_timing, crons, zones),
    st.integers(1, 100_000).map(checked_timing),
)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def fired_in_a_week(cron: str, first: datetime) -> list[datetime]:
    """Look once a minute for a week, as a worker does, and fire what is due."""
    timing = checked_timing(cron, "Europe/Berlin")
    now = ms(first)
    tick, fired = timing.after(now - 1), []
    for _ in range(7 * 24 * 60):
        if tick <= now:
            due = due_ticks(timing, "once", tick, now)
            assert due.missed == 0
            fired += due.fire
            tick = due.following
        now += MINUTE
    return [datetime.fromtimestamp(each / 1000, BERLIN) for each in fired]


@pytest.mark.parametrize("day", ["2026-03-26", "2026-10-22"])
def test_each_minute_of_a_week_is_fired_once_when_the_clocks_change(day: str) -> None:
    first = datetime.fromisoformat(day).replace(tzinfo=BERLIN)

    fired = fired_in_a_week("* * * * *", first)

    minutes = [
        first.astimezone(timezone.utc) + timedelta(minutes=n) for n in range(7 * 1440)
    ]
    assert [each.astimezone(timezone.utc) for each in fired] == minutes


def test_in_spring_what_falls_into_the_skipped_hour_is_run_after_it() -> None:
    first = datetime(2026, 3, 26, tzinfo=BERLIN)

    fired = fired_in_a_week("30 2 * * *", first)

    assert [f"{each:%d %H:%M}" for each in fired] == [
        *("26 02:30", "27 02:30", "28 02:30"),
        "29 03:00",
        *("30 02:30", "31 02:30", "01 02:30"),
    ]


def test_in_autumn_what_falls_into_the_double_hour_is_run_once() -> None:
    first = datetime(2026, 10, 22, tzinfo=BERLIN)

    fired = fired_in_a_week("30 2 * * *", first)

    assert [each.day for each in fired] == [22, 23, 24, 25, 26, 27, 28]
    assert fired[3].astimezone(timezone.utc).hour == 0, "the first of the two"


@pytest.mark.parametrize("day", [datetime(2026, 4, 5), datetime(2026, 10, 4)])
@pytest.mark.parametrize("cron", ["0 */12 * * *", "0 */6 * * *", "*/30 9-12 * * *"])
def test_no_tick_is_lost_where_the_clocks_are_changed_by_half_an_hour(
    cron: str, day: datetime
) -> None:
    zone = ZoneInfo("Australia/Lord_Howe")
    timing = checked_timing(cron, zone.key)
    noon = ms(day.replace(hour=12, tzinfo=zone))

    before = [ms(day.replace(tzinfo=zone)) - 1000]
    while before[-1] < noon:
        before.append(timing.after(before[-1]))

    assert before[-1] == noon
    starts = range(before[0], noon, 7 * MINUTE)
    assert {timing.after(start) for start in starts} == {*before[1:]}


def test_an_expression_with_seconds_ticks_twice_in_the_double_hour() -> None:
    timing = checked_timing("0 30 2 25 10 *", "Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)

    ticks = [timing.after(START)]
    ticks += [timing.after(ticks[0]), timing.after(ticks[0] + 15 * MINUTE)]

    second = ms(first.replace(fold=1))
    assert ticks == [ms(first), second, second]


def test_an_interval_ticks_at_its_multiples_in_every_process() -> None:
    timing = checked_timing(timedelta(minutes=5))

    noon = ms(datetime(2026, 6, 1, 12, 0, tzinfo=timezone.utc))
    assert timing.after(noon) == noon + 5 * MINUTE
    assert timing.after(noon + 1) == noon + 5 * MINUTE
    assert timing.after(noon - 1) == noon


@given(timings, moments)
def test_the_next_tick_is_later_and_no_tick_lies_between(
    timing: Any, moment: int
) -> None:
    tick = timing.after(moment)

    assert tick > moment
    assert timing.after((moment + tick) // 2) == tick
    assert timing.after(tick - 1) == tick


@given(timings, moments)
def test_the_tick_before_is_the_one_whose_next_is_not_before(
    timing: Any, moment: int
) -> None:
    before = timing.before(moment, moment - 40 * DAY)

    assert before is not None
    assert before < moment <= timing.after(before)


@given(
    st.sampled_from([checked_timing("*/5 * * * *"), checked_timing(90)]),
    st.sampled_from(["skip", "once", "all"]),
    moments,
    st.integers(0, 3 * 3_600_000),
)
def test_each_tick_is_fired_or_counted_as_missed(
    timing: Any, missed: Any, moment: int, downtime: int
) -> None:
    tick = timing.after(moment)
    now = tick + downtime
    every = [tick]
    while (following := timing.after(every[-1])) <= now:
        every.append(following)

    due = due_ticks(timing, missed, tick, now)

    assert due.following == following
    assert due.missed + len(due.fire) == len(every)
    assert every[len(every) - len(due.fire) :] == list(due.fire)
    most = MOST_MISSED if missed == "all" or downtime <= PROMPT_MS else 1
    least = 0 if missed == "skip" and now - every[-1] > LATE_MS else 1
    assert least <= len(due.fire) <= most


def test_after_a_long_downtime_the_newest_ticks_are_found_without_counting_all() -> (
    None
):
    timing = checked_timing("* * * * * *")

    due = due_ticks(timing, "all", START, START + 300 * DAY)

    assert due.fire[-1] == START + 300 * DAY
    assert len(due.fire) == MOST_MISSED
    assert due.following == START + 300 * DAY + 1000


@pytest.mark.parametrize("missed", ["skip", "once"])
def test_no_tick_is_lost_at_short_intervals_while_somebody_looks(missed: Any) -> None:
    second = checked_timing(1)
    assert due_ticks(second, missed, 10_000, 12_100).fire == (10_000, 11_000, 12_000)
    assert due_ticks(second, missed, 10_000, 60_500).fire == (60_000,)


def test_a_nightly_task_that_was_missed_by_hours_is_skipped_or_made_up_for() -> None:
    timing = checked_timing("0 3 * * *")
    tick, now = START + 3 * 3_600_000, START + 8 * 3_600_000

    assert due_ticks(timing, "skip", tick, now).fire == ()
    assert due_ticks(timing, "skip", tick, tick + LATE_MS).fire == (tick,)
    assert due_ticks(timing, "once", tick, now).fire == (tick,)


@given(st.text(min_size=1, max_size=5), moments, st.integers(0, 60_000))
def test_jitter_is_the_same_in_every_process_and_below_its_bound(
    name: str, tick: int, jitter: int
) -> None:
    offset = jitter_of(name, tick, jitter)

    assert offset == jitter_of(name, tick, jitter)
    assert offset == 0 if jitter == 0 else 0 <= offset < jitter


def test_jitter_spreads_schedules_that_tick_together() -> None:
    offsets = {jitter_of(f"s{n}", START, 60_000) for n in range(100)}

    assert len(offsets) > 90
    assert max(offsets) - min(offsets) > 50_000


def test_the_id_of_a_tick_is_readable_and_an_id() -> None:
    assert tick_id("report", START) == "report@2026-01-01T00:00:00Z"
    assert tick_id("report", START + 250) == "report@2026-01-01T00:00:00.250Z"
    longest = checked_schedule_name("n" * 160)
    assert checked_id(tick_id(longest, START + 250))


@pytest.mark.parametrize(
    ("every", "zone", "words"),
    [
        ("0 0 31 2 *", None, "never happens: there is no such day"),
        ("* * */20 * 1L", None, "never happens"),
        ("* * * *", None, "wrong number of fields"),
        ("61 * * * *", None, "bad minute"),
        ("", None, "not a cron expression"),
        ("* * * * *", "Europe/Berlim", "no time zone 'Europe/Berlim'"),
        ("* * * * *", "../etc/passwd", "no time zone"),
        ("* * * * *", "", "time zone"),
        ("* * * * *", 1, "timezone must be a name"),
        (0, None, "above 0 seconds"),
        (timedelta(0), None, "above 0 seconds"),
        (-5, None, "above 0 seconds"),
        (0.5, None, "from 1 second"),
        (float("nan"), None, "every must be"),
        (timedelta(days=500), None, "366 days"),
        (60, "Europe/Berlin", "timezone= is for cron"),
        (["*"], None, "every must be seconds, a timedelta or a cron expression"),
        (None, None, "every must be seconds, a timedelta or a cron expression"),
        (True, None, "every must be seconds, a timedelta or a cron expression"),
        (float("inf"), None, "above 0 seconds and finite"),
        (400 * 86_400, None, "366 days, not 34560000"),
        ("@daily", None, "names such as @daily are not supported"),
        ("0 0 31 2,4 *", None, "never happens: there is no such day"),
        ("0 0 x 2 *", None, "bad day-of-month"),
        ("0 0 1 13 *", None, "bad month"),
    ],
)
def test_what_never_ticks_is_refused_with_the_reason(
    every: Any, zone: Any, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        checked_timing(every, zone)


def test_other_bad_words_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'once'"):
        checked_missed("onse")
    with pytest.raises(ConfigurationError, match="missed must be one of"):
        checked_missed(None)
    with pytest.raises(ConfigurationError, match="jitter must be"):
        checked_jitter(-1)
    with pytest.raises(ConfigurationError, match="name of a schedule"):
        checked_schedule_name("a@b")


@given(st.binary(max_size=60))
def test_garbage_is_not_a_schedule(garbage: bytes) -> None:
    with pytest.raises(ConfigurationError):
        ScheduleDefinition.read(garbage)


@pytest.mark.parametrize(
    "spoilt",
    [
        b'{"v":1,"task":"t","version":1,"cron":"x","payload":{}}',
        b'{"v":1,"task":"t","version":1,"payload":{}}',
        b'{"v":1,"task":"t","version":1,"every_ms":60000,"payload":[]}',
        b'{"v":2,"task":"t","version":1,"every_ms":60000,"payload":{}}',
        b'{"v":1,"task":"t","version":1,"cron":"0 1 * * *","timezone":"","payload":{}}',
        b'{"v":1,"task":"t","version":1,"every_ms":1,"payload":{}}',
    ],
)
def test_a_definition_that_never_ticks_is_refused(spoilt: bytes) -> None:
    with pytest.raises(ConfigurationError):
        ScheduleDefinition.read(spoilt)
