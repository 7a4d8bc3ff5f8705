"""Each call names its keys and arguments as the header of its script does."""

from __future__ import annotations

from pathlib import Path

import pytest

import workstealing.node
import workstealing.queue
from workstealing.node import shared_state
from workstealing.queue import (
    brief_calls,
    composition_calls,
    inspection_calls,
    limit_calls,
    listing_calls,
    minute_calls,
    pause_calls,
    producer_calls,
    schedule_calls,
    shard_calls,
    task_output_calls,
    unique_calls,
    upkeep_calls,
    worker_calls,
)
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call
from workstealing.queue.unique_calls import UniqueRequest
from workstealing.tasks.attempt import Delivery, Report

KEYS = QueueKeys("q", "r")
SETTINGS = QueueSettings()
TASK = Delivery("t", "7", 1, b"{}")
REPORT = Report("t", "7", "done", b"{}", 0)

BUILT: tuple[Call[object], ...] = (
    composition_calls.submit_steps(
        KEYS,
        SETTINGS,
        [composition_calls.NewStep("t", b"{}", follower="u")],
        composition_calls.NewGroup("u", 1),
        whole=1,
        limits={"l": "1"},
    ),
    inspection_calls.counts(KEYS),
    inspection_calls.trace(KEYS, "t"),
    limit_calls.describe_limits(KEYS, "l", "k"),
    limit_calls.full_limits(KEYS, [b"1\t\t\tl=k"]),
    limit_calls.held_back(KEYS, "t"),
    limit_calls.set_limit(KEYS, "l", "5"),
    listing_calls.count_living(KEYS, 1),
    listing_calls.count_parked(KEYS, ["x@1", "y@2"]),
    listing_calls.describe_workers(KEYS, ["v.0", "w.0"]),
    listing_calls.ended(KEYS.outcome_times, most=9, latest=True, after=b"t 1"),
    listing_calls.line_fronts(KEYS, most=9),
    listing_calls.list_running(KEYS, ["v.0", "w.0"], most=9),
    listing_calls.memory_usage([KEYS.task, KEYS.lock]),
    listing_calls.outcome_kept(KEYS, "t"),
    listing_calls.ranked(KEYS.later, most=9, latest=True),
    listing_calls.scan_tasks(KEYS, "0", count=9),
    listing_calls.summarize(KEYS, ["t", "u"], most=9),
    minute_calls.read_stretches(KEYS, 10, [1, 12]),
    worker_calls.record_minute(KEYS, 1, {"x@1": [1] * 13}),
    task_output_calls.read_progress(KEYS, [("t", b"{}"), ("u", None)]),
    shared_state.place(KEYS, "w.0", ["t", "u"], b"{}"),
    shared_state.snatch(KEYS, "v.0", "w.0", "t"),
    pause_calls.pause(KEYS, "x"),
    pause_calls.resume(KEYS, "x", goes_on=True),
    producer_calls.cancel(KEYS, SETTINGS, "t", "w.0", b"{}", needs="x@1"),
    producer_calls.end_input(KEYS, ended=True),
    producer_calls.forget(KEYS, ["t", "u"]),
    producer_calls.read_outcomes(KEYS, ["t", "u"]),
    producer_calls.replay(KEYS, "t", drop=True),
    producer_calls.request_outcome(KEYS, "t", "c"),
    producer_calls.submit(KEYS, SETTINGS, [("t", b"{}"), ("u", b"{}")], priority=2),
    schedule_calls.declare_schedules(
        KEYS, 7, [schedule_calls.ScheduleDeclaration("s", "d", "t", True, b"{}", 9)]
    ),
    schedule_calls.due_schedules(KEYS, most=9),
    schedule_calls.fire(
        KEYS,
        schedule_calls.DueSchedule(b"s", "9", b"{}"),
        expected="9",
        following=10,
        firing=schedule_calls.Firing(9, "s@9", b"{}", 2, 11, "2\t\t\tl", {"l": "1"}),
    ),
    schedule_calls.list_schedules(KEYS),
    schedule_calls.pause_schedule(KEYS, "s"),
    schedule_calls.put_schedule(KEYS, "s", b"{}", tick=9),
    schedule_calls.remove_schedule(KEYS, "s"),
    shard_calls.declare_shards(KEYS, 8),
    shard_calls.shard_status(KEYS, SETTINGS),
    task_output_calls.log(KEYS, "w.0", TASK, 1, b"{}"),
    task_output_calls.note(KEYS, "w.0", TASK, "progress", b"{}"),
    task_output_calls.read_log(KEYS, "t"),
    unique_calls.submit_unique(
        KEYS, SETTINGS, UniqueRequest("t", b"{}", True, 1, limits={"l": "1"})
    ),
    upkeep_calls.expire(KEYS, SETTINGS, most=9),
    upkeep_calls.idle(KEYS, ["v.0", "w.0"]),
    upkeep_calls.promote(KEYS, most=9),
    brief_calls.brief_exchange(
        KEYS, SETTINGS, "w.0", ["x@1"], reports=[REPORT], victim="v.0"
    ),
    brief_calls.keep_lease(KEYS, SETTINGS, "w.0"),
    upkeep_calls.reassign(KEYS, SETTINGS, "w.0", most=9),
    upkeep_calls.reconcile(KEYS, page=9),
    upkeep_calls.record_duties(KEYS, "w.0", ["expire", "promote"]),
    upkeep_calls.survey(KEYS),
    upkeep_calls.unpark(KEYS, "x@1", most=9),
    worker_calls.begin(KEYS, "w.0", TASK),
    worker_calls.exchange(
        KEYS, SETTINGS, "w.0", "i", want=1, keep=2, reports=[REPORT], held=["t", "u"]
    ),
    worker_calls.find_capable(KEYS, "x@1", but="w.0"),
    worker_calls.join(KEYS, SETTINGS, "w.0", "i", {"abilities": []}),
    worker_calls.leave(KEYS, "w.0", "i", final=True),
    worker_calls.park(KEYS, "w.0", TASK, "x@1"),
    worker_calls.release(KEYS, "w.0", [TASK]),
    worker_calls.route(KEYS, "w.0", TASK, "v.0"),
    worker_calls.steal(KEYS, "v.0", "w.0"),
)

# Keys of one worker, task, priority or ability: how their names begin.
OWN = {
    "hundred_minutes": "hundred_minutes:",
    "ten_minutes": "ten_minutes:",
    "deque": "deque:",
    "inbox": "inbox:",
    "log": "log:",
    "notes": "notes:",
    "parked_for": "parked:",
    "ranks": "",
    "running": "running:",
    "thief_deque": "deque:w.0",
    "victim_deque": "deque:v.0",
}
GROUPS = {
    "inboxes": ["inbox:0", "inbox:1", "inbox:2"],
    "turns": ["turns:0", "turns:1", "turns:2"],
}


def test_no_script_is_left_out() -> None:
    folders = [
        Path(str(package.__file__)).parent / "lua"
        for package in (workstealing.queue, workstealing.node)
    ]
    files = {path.stem for folder in folders for path in folder.glob("*.lua")}

    assert {call.script.name for call in BUILT} == files


@pytest.mark.parametrize("call", BUILT, ids=lambda call: call.script.name)
def test_each_key_stands_where_the_header_says(call: Call[object]) -> None:
    declared = call.script.declared_keys
    given = [key.removeprefix(KEYS.prefix) for key in call.keys]

    for name in declared.types:
        if name in declared.sizes:
            size = declared.sizes[name]
            assert given[:size] == GROUPS[name]
            given = given[size:]
        else:
            key = given.pop(0)
            assert key.startswith(OWN[name]) if name in OWN else key == name
    assert bool(given) == (declared.tail is not None)


@pytest.mark.parametrize("call", BUILT, ids=lambda call: call.script.name)
def test_each_argument_is_of_the_type_that_the_header_says(call: Call[object]) -> None:
    declared = call.script.declared_arguments

    for type_, value in zip(declared.types.values(), call.arguments, strict=False):
        if type_ == "flag":
            assert value in (0, 1)
        elif type_ == "int":
            assert isinstance(value, int)
        else:
            assert type_ == "str"
            assert isinstance(value, (str, bytes))
    left = len(call.arguments) - len(declared.types)
    assert left > 0 if declared.tail else left == 0
