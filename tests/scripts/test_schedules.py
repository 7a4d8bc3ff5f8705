"""Schedules in Redis: one firing per tick, in any order; which release decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from workstealing.queue.producer_calls import end_input
from workstealing.queue.schedule_calls import (
    DueSchedule,
    Firing,
    ScheduleDeclaration,
    declare_schedules,
    due_schedules,
    fire,
    list_schedules,
    pause_schedule,
    put_schedule,
    remove_schedule,
    resume_schedule,
)
from workstealing.queue.steps import Call
from workstealing.tasks.schedule import due_ticks, tick_id
from workstealing.tasks.schedule_definition import ScheduleDefinition

EVERY = 10_000
MISSED = ("skip", "once", "all")


def definition(missed: Any = "once", **fields: Any) -> ScheduleDefinition:
    return ScheduleDefinition(
        v=1,
        task="report",
        version=1,
        every_ms=EVERY,
        missed=missed,
        payload=msgspec.Raw(b"{}"),
        **fields,
    )


def firings(queue: Any, due: DueSchedule, now_ms: int) -> list[Call[Any]]:
    """Return what one process does about a schedule, by a clock of our own."""
    read = ScheduleDefinition.read(due.definition)
    ticks = due_ticks(read.timing, read.missed, int(float(due.tick)), now_ms)
    if not ticks.fire:
        return [
            fire(
                queue.keys,
                due,
                expected=due.tick,
                following=ticks.following,
                missed=ticks.missed,
            )
        ]
    return [
        fire(
            queue.keys,
            due,
            expected=expected,
            following=following,
            missed=ticks.missed if tick == ticks.fire[0] else 0,
            firing=Firing(tick, tick_id(due.name, tick), b"{}", 1, 0),
        )
        for expected, tick, following in zip(
            (due.tick, *map(str, ticks.fire[1:])),
            ticks.fire,
            (*ticks.fire[1:], ticks.following),
            strict=True,
        )
    ]


class Ticking(RuleBasedStateMachine):
    """Processes look at schedules and fire them; replies are lost, calls come late."""

    def __init__(self, make_queue: Callable[..., Any]) -> None:
        super().__init__()
        self.make_queue = make_queue
        self.now = EVERY
        self.plans: list[Call[Any]] = []
        self.old: list[Call[Any]] = []
        self.names: dict[str, str] = {}

    @initialize(count=st.integers(1, 3))
    def begin(self, count: int) -> None:
        # Without outcomes nothing but the tick keeps a task from coming twice.
        self.queue = self.make_queue(retention_ms=0)
        self.queue.join("w.0")
        for n in range(count):
            missed = MISSED[n]
            name = f"s-{missed}"
            self.names[name] = missed
            call = put_schedule(
                self.queue.keys, name, definition(missed).encode(), tick=EVERY
            )
            assert self.queue.do(call) == "ok"

    @rule(time=st.sampled_from([1, EVERY // 2, EVERY, 3 * EVERY, 40 * EVERY]))
    def pass_time(self, time: int) -> None:
        self.now += time

    @rule()
    def look(self) -> None:
        """Let another process decide what to do, and do it some time."""
        for due in self.queue.do(due_schedules(self.queue.keys, most=9)).schedules:
            if float(due.tick) <= self.now:
                self.plans += firings(self.queue, due, self.now)

    @precondition(lambda self: self.plans)
    @rule(number=st.integers(0, 99), is_repeated=st.booleans())
    def fire_one(self, number: int, is_repeated: bool) -> None:
        call = self.plans.pop(number % len(self.plans))
        first = self.queue.do(call)
        self.old.append(call)
        if is_repeated:
            before = self.queue.state()
            assert self.queue.do(call) == "moved"
            assert self.queue.state() == before
        assert first in ("fired", "passed", "moved")

    @precondition(lambda self: self.plans)
    @rule()
    def fire_all(self) -> None:
        for call in self.plans:
            self.queue.do(call)
        self.old += self.plans
        self.plans = []

    @precondition(lambda self: self.plans)
    @rule()
    def die(self) -> None:
        """Let a process be killed between two of its calls."""
        del self.plans[len(self.plans) // 2 :]

    @precondition(lambda self: self.old)
    @rule(number=st.integers(0, 99))
    def come_late(self, number: int) -> None:
        before = self.queue.state()
        assert self.queue.do(self.old[number % len(self.old)]) == "moved"
        assert self.queue.state() == before

    @rule()
    def work(self) -> None:
        """Run what waits; then nothing in Redis knows of it any more."""
        taken = self.queue.take("w.0")
        for task in taken:
            assert task.id not in self.ran, "one task per tick"
            self.ran.add(task.id)
        self.queue.report("w.0", "done", *taken)

    @property
    def ran(self) -> set[str]:
        return self.__dict__.setdefault("_ran", set())

    @invariant()
    def every_tick_is_accounted_for(self) -> None:
        if not self.names:
            return
        submitted = self.ran | set(self.queue.waiting())
        rows = self.queue.do(list_schedules(self.queue.keys, size=9)).rows
        for row in rows:
            own = [one for one in submitted if one.startswith(f"{row.name}@")]
            assert row.fired == len(own)
            assert row.next_ms is not None
            assert row.fired + row.missed == row.next_ms // EVERY - 1
            assert row.next_ms <= (self.now // EVERY + 1) * EVERY


@pytest.mark.timeout(120)
def test_every_tick_is_fired_once_or_counted_as_missed_in_any_order(
    make_queue: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    is_fake = "fakeredis" in request.node.name
    run_state_machine_as_test(
        lambda: Ticking(make_queue),
        settings=settings(
            max_examples=15 if is_fake else 60,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def declaration(name: str, **more: Any) -> ScheduleDeclaration:
    fields: dict[str, Any] = {"digest": "d", "timing": "t", "keep": False, "tick": 5}
    return ScheduleDeclaration(
        name, definition=definition().encode(), **{**fields, **more}
    )


def declare(queue: Any, release: int, *schedules: ScheduleDeclaration) -> Any:
    return queue.do(declare_schedules(queue.keys, release, schedules))


def renew(queue: Any, release: int, since_ms: int) -> str:
    """Say that a release is at work."""
    call = declare_schedules(queue.keys, release, since_ms=since_ms)
    return str(queue.do(call).verdict)


def known(queue: Any) -> set[str]:
    return {row.name for row in queue.do(list_schedules(queue.keys)).rows}


def test_processes_of_one_release_add_up(queue: Any) -> None:
    assert declare(queue, 7, declaration("a")).written == 1
    assert declare(queue, 7, declaration("b")).removed == 0
    assert declare(queue, 7, declaration("a")).written == 0
    assert known(queue) == {"a", "b"}


def test_a_newer_release_removes_what_left_the_code_and_the_older_is_ignored(
    queue: Any,
) -> None:
    declare(queue, 7, declaration("a"), declaration("b"), declaration("c", keep=True))
    assert declare(queue, 8, declaration("a")).removed == 1
    assert known(queue) == {"a", "c"}

    late = declare(queue, 7, declaration("a", digest="old"), declaration("b"))
    assert (late.verdict, late.former, late.unknown) == ("old", 8, ("b",))
    assert known(queue) == {"a", "c"}


def fall_silent(queue: Any) -> None:
    """Let nothing have been heard of the release that decides, for five minutes."""
    spoke = int(queue.client.hget(queue.keys.control, "schedule_release_spoke"))
    queue.client.hset(queue.keys.control, "schedule_release_spoke", spoke - 300_000)


def test_after_a_rollback_the_older_release_decides_again(queue: Any) -> None:
    declare(queue, 7, declaration("a"), declaration("b", tick=6))
    declare(queue, 8, declaration("a", digest="new"), declaration("c"))
    fall_silent(queue)

    back = declare(queue, 7, declaration("a"), declaration("b", tick=999))

    assert (back.verdict, back.written, back.removed, back.former) == ("ok", 2, 1, 8)
    rows = {r.name: r for r in queue.do(list_schedules(queue.keys)).rows}
    assert set(rows) == {"a", "b"}
    assert rows["b"].next_ms == 6, "its tick is not lost"
    assert declare(queue, 8, declaration("c")).written == 1


def test_a_release_that_is_at_work_decides_for_as_long(queue: Any) -> None:
    since = declare(queue, 8).since_ms
    fall_silent(queue)

    assert renew(queue, 8, since) == "ok"

    assert declare(queue, 7).verdict == "old"


def test_a_process_declares_again_if_others_have_decided_since(queue: Any) -> None:
    before = declare(queue, 7, declaration("a")).since_ms
    declare(queue, 8)
    assert renew(queue, 7, before) == "old"
    fall_silent(queue)
    assert renew(queue, 7, before) == "again"
    queue.client.hincrby(queue.keys.control, "schedule_release_since", -1)
    now = declare(queue, 7).since_ms
    assert renew(queue, 7, now) == "ok"
    assert renew(queue, 7, now - 1) == "again"


def test_what_an_operator_removed_stays_away_after_a_rollback(queue: Any) -> None:
    declare(queue, 8, declaration("a"))
    queue.do(remove_schedule(queue.keys, "a"))
    fall_silent(queue)

    declare(queue, 7, declaration("a"))

    assert known(queue) == set()


def test_code_without_releases_that_comes_back_removes_nothing(queue: Any) -> None:
    declare(queue, 8, declaration("a"))
    fall_silent(queue)

    assert declare(queue, 0, declaration("b")).removed == 0

    assert known(queue) == {"a", "b"}


def test_what_one_process_of_a_release_does_not_know_another_brings_back(
    queue: Any,
) -> None:
    declare(queue, 7, declaration("a", tick=5), declaration("b", tick=6))
    declare(queue, 8, declaration("a"))
    declare(queue, 8, declaration("b", tick=999))

    rows = {r.name: r for r in queue.do(list_schedules(queue.keys)).rows}
    assert rows["b"].next_ms == 6, "its tick is not lost"


def test_without_releases_nothing_is_removed_by_itself(queue: Any) -> None:
    declare(queue, 0, declaration("a"), declaration("b"))
    assert declare(queue, 0, declaration("a")).removed == 0
    assert known(queue) == {"a", "b"}


@pytest.mark.parametrize("release", [0, 7])
def test_what_an_operator_removed_stays_away_until_a_newer_release(
    queue: Any, release: int
) -> None:
    declare(queue, release, declaration("a"))
    assert queue.do(remove_schedule(queue.keys, "a"))
    assert not queue.do(remove_schedule(queue.keys, "a"))

    declare(queue, release, declaration("a"))
    assert known(queue) == set()
    declare(queue, release + 1, declaration("a"))
    assert known(queue) == {"a"}


def test_to_resume_a_removed_schedule_lets_its_code_declare_it(queue: Any) -> None:
    declare(queue, 0, declaration("a"))
    queue.do(remove_schedule(queue.keys, "a"))
    assert queue.do(resume_schedule(queue.keys, "a", 9)) == "removed"
    declare(queue, 0, declaration("a"))
    assert known(queue) == {"a"}


def test_a_changed_argument_keeps_the_tick_and_another_time_does_not(
    queue: Any,
) -> None:
    def tick() -> Any:
        return queue.do(list_schedules(queue.keys, name="a")).rows[0].next_ms

    declare(queue, 1, declaration("a", tick=5))
    declare(queue, 2, declaration("a", digest="e", tick=50))
    assert tick() == 5
    declare(queue, 3, declaration("a", digest="f", timing="u", tick=50))
    assert tick() == 50


def test_a_change_stands_until_the_code_changes(queue: Any) -> None:
    declare(queue, 1, declaration("a"))
    changed = definition("skip").encode()
    call = put_schedule(
        queue.keys, "a", changed, tick=9, expected=definition().encode()
    )
    assert queue.do(call) == "ok"
    assert queue.do(call) == "moved"

    declare(queue, 2, declaration("a"))
    assert queue.do(list_schedules(queue.keys)).rows[0].definition == changed
    declare(queue, 3, declaration("a", digest="e"))
    assert queue.do(list_schedules(queue.keys)).rows[0].definition != changed


def test_a_paused_schedule_stays_paused_whatever_is_declared(queue: Any) -> None:
    declare(queue, 1, declaration("a"))
    assert queue.do(pause_schedule(queue.keys, "a")) == "ok"
    assert queue.do(pause_schedule(queue.keys, "a")) == "already"
    declare(queue, 2, declaration("a", digest="e"))

    assert queue.do(due_schedules(queue.keys, most=9)).schedules == ()
    assert queue.do(resume_schedule(queue.keys, "a", 9)) == "ok"
    assert queue.do(resume_schedule(queue.keys, "a", 9)) == "already"
    assert queue.do(list_schedules(queue.keys, name="a")).rows[0].next_ms == 9
    assert queue.do(pause_schedule(queue.keys, "b")) == "unknown"


def test_data_does_not_replace_what_the_code_declares(queue: Any) -> None:
    declare(queue, 0, declaration("a"))
    call = put_schedule(queue.keys, "a", definition("all").encode(), tick=9)

    assert queue.do(call) == "declared"


def test_a_tick_is_missed_while_the_input_has_ended(queue: Any) -> None:
    queue.do(put_schedule(queue.keys, "a", definition().encode(), tick=EVERY))
    queue.do(end_input(queue.keys, ended=True))
    (due,) = queue.do(due_schedules(queue.keys, most=9)).schedules

    assert [queue.do(call) for call in firings(queue, due, EVERY)] == ["passed"]
    row = queue.do(list_schedules(queue.keys)).rows[0]
    assert (row.fired, row.missed, row.next_ms) == (0, 1, 2 * EVERY)
    assert queue.waiting() == []


def test_a_tick_without_a_schedule_is_forgotten(queue: Any) -> None:
    queue.client.zadd(queue.keys.ticks, {"ghost": 5})

    assert queue.do(due_schedules(queue.keys, most=9)).schedules == ()
    assert queue.client.zcard(queue.keys.ticks) == 0


def test_a_worker_is_told_of_ticks_when_it_rests_or_renews(queue: Any) -> None:
    queue.join("w.0")
    queue.submit("t")
    queue.do(put_schedule(queue.keys, "a", definition().encode(), tick=EVERY))

    assert queue.exchange("w.0", want=1, renews=False).due_schedules == 0
    assert queue.exchange("w.0", want=1, renews=False).due_schedules == 1
    assert queue.exchange("w.0", renews=True).due_schedules == 1
