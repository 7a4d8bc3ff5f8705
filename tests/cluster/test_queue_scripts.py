"""Each script of the queue on three nodes, with its keys checked by the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

import workstealing.queue
from workstealing.drivers.sync_driver import Driver
from workstealing.queue import (
    composition_calls,
    limit_calls,
    listing_calls,
    minute_calls,
    pause_calls,
    producer_calls,
    schedule_calls,
    shard_calls,
    task_output_calls,
    unique_calls,
)
from workstealing.queue.brief_calls import brief_exchange, keep_lease
from workstealing.queue.inspection_calls import begun_at, counts, trace
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import (
    cancel,
    end_input,
    replay,
    request_outcome,
    submit,
)
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, Step
from workstealing.queue.unique_calls import UniqueRequest, submit_unique
from workstealing.queue.upkeep_calls import (
    expire,
    idle,
    promote,
    reassign,
    reconcile,
    record_duties,
    survey,
    unpark,
)
from workstealing.queue.worker_calls import (
    begin,
    exchange,
    find_capable,
    join,
    leave,
    park,
    record_minute,
    release,
    route,
    steal,
)
from workstealing.tasks.attempt import Delivery, Report
from workstealing.testing import Server

from .conftest import StrictDriver

SETTINGS = QueueSettings()
RUNS = [f"run-{number}" for number in range(6)]
"""Enough runs that their slots are spread over all three nodes."""


class FullDriver(Driver):
    """Runs scripts on a server that is out of memory, but those that may not be."""

    MAY_BE_REFUSED = (
        *("submit", "submit_steps", "submit_unique", "log", "note"),
        *("declare_schedules", "put_schedule", "pause_schedule", "remove_schedule"),
    )

    def _send(self, step: Step) -> Any:
        if not isinstance(step, Call) or step.script.name in self.MAY_BE_REFUSED:
            return super()._send(step)
        self.client.config_set("maxmemory", 1)
        try:
            return super()._send(step)
        finally:
            self.client.config_set("maxmemory", 0)


def test_the_strict_driver_does_refuse_keys_of_two_slots(
    strict: StrictDriver, key_prefix: str
) -> None:
    near, far = (f"{{{key_prefix}-{side}}}:a" for side in ("near", "far"))
    text = "#!lua\nreturn redis.call('EXISTS', ARGV[1])"

    assert strict.client.execute_command("EVAL", text, 1, near, near) == 0
    with pytest.raises(ResponseError):
        strict.client.execute_command("EVAL", text, 1, near, far)


@pytest.mark.parametrize("run", RUNS)
def test_all_keys_of_a_run_live_in_one_slot(
    cluster_client: RedisCluster, key_prefix: str, run: str
) -> None:
    keys = QueueKeys(key_prefix, run)
    names = [*keys.shared(), keys.deque("a.0"), keys.running("{a}"), keys.channel("x")]
    names += [
        keys.parked_for("{y}@1"),
        keys.log("{z}"),
        keys.notes("z"),
        keys.ten_minutes(7),
        keys.hundred_minutes(7),
    ]

    assert len({cluster_client.keyslot(name) for name in names}) == 1


@pytest.mark.parametrize("run", RUNS[:3])
def test_tasks_live_on_a_cluster(any_driver: Driver, key_prefix: str, run: str) -> None:
    Story(any_driver, QueueKeys(key_prefix, run)).tell()


def test_the_story_leaves_no_script_out(strict: StrictDriver, key_prefix: str) -> None:
    Story(strict, QueueKeys(key_prefix, "run")).tell()

    folder = Path(workstealing.queue.__file__).parent / "lua"
    assert strict.performed == {path.stem for path in folder.glob("*.lua")}


def test_a_full_server_runs_each_script_that_takes_no_input(key_prefix: str) -> None:
    with (
        Server(maxmemory_policy="noeviction") as server,
        Redis.from_url(server.url) as client,
    ):
        Story(FullDriver(client), QueueKeys(key_prefix, "run")).tell()


class Story:
    """A life of a queue in which each script has something to do."""

    def __init__(self, driver: Driver, keys: QueueKeys) -> None:
        self.do = driver.call
        self.client: Any = driver.client
        self.keys = keys

    def tell(self) -> None:
        self.submit_and_take()
        self.park_and_return()
        self.route_and_write()
        self.steal_and_cancel()
        self.die_and_leave()
        self.schedule_and_fire()
        self.limit_and_take()
        self.pause_and_be_unique()
        self.have_a_spare_moment()
        self.compose_and_hand_over()
        seen = self.do(counts(self.keys))
        assert seen.unfinished == seen.tasks - seen.dead
        assert set(seen.leases) == {"w.0"}

    def pause_and_be_unique(self) -> None:
        keys, do = self.keys, self.do
        assert do(pause_calls.pause(keys, "unique"))
        envelope = b'{"v":1,"name":"unique","version":1,"payload":{}}'
        request = UniqueRequest("u1", envelope, is_drawn=True, priority=1, key="k")
        assert do(submit_unique(keys, SETTINGS, request)).verdict == "new"
        self.take("w.0", 0)
        do(exchange(keys, SETTINGS, "w.0", "1", want=1, keep=0))
        assert do(pause_calls.count_paused(keys, "unique")) == 1
        do(pause_calls.resume(keys, "unique", goes_on=False, most=10))
        (taken,) = self.take("w.0", 1)
        self.report("w.0", taken, "done")

    def have_a_spare_moment(self) -> None:
        keys, do = self.keys, self.do
        envelope = b'{"v":1,"name":"brief","version":1,"payload":{}}'
        do(submit(keys, SETTINGS, [("b1", envelope)], priority=1))
        (taken,) = do(brief_exchange(keys, SETTINGS, "host.0", ["brief@1"])).tasks
        assert do(listing_calls.count_living(keys, 1)) == 1
        assert do(keep_lease(keys, SETTINGS, "host.0")).tasks == (taken.id,)
        report = Report(taken.id, taken.token, "done", b"{}")
        assert not do(
            brief_exchange(keys, SETTINGS, "host.0", [], reports=[report])
        ).refused

    def compose_and_hand_over(self) -> None:
        keys, do = self.keys, self.do
        for inbox in (*keys.inboxes, keys.deque("w.0")):
            self.client.delete(inbox)
        steps = [
            composition_calls.NewStep("after", b"{}", waits=True),
            composition_calls.NewStep(
                "after-0", b"{}", follower="after", is_member=True
            ),
        ]
        group = composition_calls.NewGroup("after", 1)
        call = composition_calls.submit_steps(
            keys, SETTINGS, steps, group, whole=2, limits={}
        )
        assert do(call) == "ok"
        (member,) = self.take("w.0", 1)
        self.report("w.0", member, "done")
        assert self.client.hget(keys.groups, "after").startswith(b"0:1:0:")
        (step,) = self.take("w.0", 1)
        assert step.id == "after"
        self.report("w.0", step, "done")

    def submit_and_take(self) -> None:
        keys, do = self.keys, self.do
        for priority in range(3):
            names = [f"p{priority}-{number}" for number in range(4)]
            tasks = [(name, b'{"priority": %d}' % priority) for name in names]
            call = submit(keys, SETTINGS, tasks, priority=priority)
            assert do(call).verdict == "ok"
            assert do(call).known == {0, 1, 2, 3}
        do(submit(keys, SETTINGS, [("later", b"{}")], priority=1, delay_ms=60_000))
        for worker in ("v.0", "w.0"):
            do(join(keys, SETTINGS, worker, "1", {"abilities": ["x@1"]}))
        taken = self.take("v.0", 3, keep=4)
        assert do(trace(keys, taken[0].id)).worker == "v.0"
        assert do(request_outcome(keys, taken[0].id, "c")).verdict == "requested"
        assert do(begun_at(keys, "v.0", taken[0].id))
        self.report("v.0", taken[0], "done")
        self.report("v.0", taken[1], "dead")
        self.report("v.0", taken[2], "retry", 60_000)
        assert do(replay(keys, taken[1].id, drop=False))
        self.client.zadd(keys.later, {"later": 1, taken[2].id: 2})
        assert do(listing_calls.ranked(keys.later, most=1)) == (("later", 1),)
        assert do(promote(keys, most=10)) == 2
        (ended,) = do(listing_calls.ended(keys.outcome_times, most=9))
        assert ended.id == taken[0].id
        assert do(listing_calls.outcome_kept(keys, ended.id)) == ended.expires_ms
        self.client.lset(keys.outcome_times, 0, f"{ended.id} 1")
        assert do(expire(keys, SETTINGS, most=10)) == 1
        assert do(producer_calls.forget(keys, ["nobody"])) == 0
        (seen,) = do(producer_calls.read_outcomes(keys, ["later"]))
        assert seen.verdict == "pending"
        assert do(listing_calls.scan_tasks(keys, "0", count=1000)).tasks
        assert do(shard_calls.declare_shards(keys, 8)) == (1, 8)
        assert do(shard_calls.read_shards(keys)) == (1, 8)
        assert do(shard_calls.shard_status(keys, SETTINGS)).members == 2
        assert do(end_input(keys, ended=True))
        assert do(end_input(keys, ended=False))

    def schedule_and_fire(self) -> None:
        keys, do = self.keys, self.do
        declared = schedule_calls.ScheduleDeclaration("s", "d", "t", False, b"{}", 9)
        assert do(schedule_calls.declare_schedules(keys, 1, [declared])).written == 1
        (due,) = do(schedule_calls.due_schedules(keys, most=5)).schedules
        firing = schedule_calls.Firing(9, "s@9", b"{}", 1, 0)
        call = schedule_calls.fire(
            keys, due, expected=due.tick, following=10, firing=firing
        )
        assert do(call) == "fired"
        assert do(schedule_calls.put_schedule(keys, "r", b"{}", tick=9)) == "ok"
        assert do(schedule_calls.pause_schedule(keys, "r")) == "ok"
        assert len(do(schedule_calls.list_schedules(keys)).rows) == 2
        assert do(schedule_calls.remove_schedule(keys, "r"))
        assert do(schedule_calls.remove_schedule(keys, "s"))

    def limit_and_take(self) -> None:
        keys, do = self.keys, self.do
        for inbox in (*keys.inboxes, keys.deque("w.0")):
            self.client.delete(inbox)
        line, limits = "1\tfair\t2\tone=a\tr", {"one": "1", "r": "9/60000"}
        tasks_in_line = [("l1", b"{}"), ("l2", b"{}")]
        call = submit(
            keys, SETTINGS, tasks_in_line, priority=1, lines=[line] * 2, limits=limits
        )
        assert do(call).verdict == "ok"
        (first,) = self.take("w.0", 1)
        # Whoever wants another one blocks the line.
        do(exchange(keys, SETTINGS, "w.0", "1", want=1, keep=0))
        assert do(limit_calls.held_back(keys, "l2")).limit_key == "one=a"
        name = line.encode()
        assert do(limit_calls.full_limits(keys, [name])) == {name: "one=a"}
        assert do(listing_calls.line_fronts(keys, most=9)) == ("l2",)
        assert do(limit_calls.set_limit(keys, "one", "3")).is_known
        assert len(do(limit_calls.describe_limits(keys))) == 2
        (second,) = self.take("w.0", 1)
        self.report("w.0", first, "done")
        self.report("w.0", second, "done")
        assert do(pause_calls.pause(keys, "x"))
        assert do(pause_calls.resume(keys, "x", goes_on=False)).was_paused
        unique = unique_calls.UniqueRequest("u", b"{}", True, 1, key="k")
        assert do(unique_calls.submit_unique(keys, SETTINGS, unique)).verdict == "new"
        (third,) = self.take("w.0", 1)
        self.report("w.0", third, "done")

    def park_and_return(self) -> None:
        keys, do = self.keys, self.do
        parked, released = self.take("v.0", 2)
        assert do(park(keys, "v.0", parked, "x@1"))
        assert do(release(keys, "v.0", [released])) == 1
        assert do(survey(keys)).wanted == ("x@1",)
        (waited,) = do(listing_calls.count_parked(keys, ["x@1"]))
        assert (waited.tasks, waited.workers) == (1, 2)
        assert do(unpark(keys, "x@1", most=10)) == 1

    def route_and_write(self) -> None:
        keys, do = self.keys, self.do
        (task,) = self.take("v.0", 1)
        assert do(find_capable(keys, "x@1", but="v.0")) == "w.0"
        assert do(route(keys, "v.0", task, "w.0"))
        (task,) = self.take("w.0", 1)
        assert do(begin(keys, "w.0", task))
        assert do(task_output_calls.log(keys, "w.0", task, 1, b"told"))
        assert do(task_output_calls.read_log(keys, task.id)).records == (b"told",)
        assert do(
            task_output_calls.await_log(
                keys, task.id, task_output_calls.BEGINNING, 0.01
            )
        )
        assert not do(
            task_output_calls.await_log(
                keys, "silent", task_output_calls.BEGINNING, 0.01
            )
        )
        assert do(task_output_calls.note(keys, "w.0", task, "checkpoint", b"7"))
        call = task_output_calls.read_note(keys, task.id, task.envelope, "checkpoint")
        assert do(call) == b"7"
        assert do(task_output_calls.note(keys, "w.0", task, "progress", b"8"))
        asked = [(task.id, task.envelope), (task.id, b"other"), ("silent", None)]
        said = do(task_output_calls.read_progress(keys, asked))
        assert said == (b"8", None, None)
        assert do(task_output_calls.drop_notes(keys, task.id))
        self.report("w.0", task, "back")
        # It was given an urgent one first, if there was one.
        do(leave(keys, "w.0", "1", final=False))

    def steal_and_cancel(self) -> None:
        keys, do = self.keys, self.do
        assert do(idle(keys, ("v.0", "w.0"))) == ("w.0",)
        assert do(steal(keys, "v.0", "w.0", wake=True)) > 0
        taken = self.take("w.0", 1)[0]
        (held,) = do(listing_calls.list_running(keys, ["v.0", "w.0"], most=9))
        assert held[:2] == ("w.0", taken.id)
        (shown,) = do(listing_calls.summarize(keys, [taken.id], most=100))
        assert (shown.worker, shown.envelope) == ("w.0", taken.envelope)
        assert do(listing_calls.describe_workers(keys, ["v.0", "w.0"]))[1].running == 1
        assert do(listing_calls.memory_usage([keys.task, keys.lock]))[0]
        assert do(record_minute(keys, 7, {"x@1": [1, 0, 5, 1]}))
        (minute,) = do(minute_calls.read_stretches(keys, 1, [7]))
        assert minute == {"x@1": (1, 0, 5, 1)}
        assert do(cancel(keys, SETTINGS, taken.id, "w.0", b"x")) == "asked"
        answer = do(exchange(keys, SETTINGS, "w.0", "1", want=0, keep=0))
        assert answer is not None
        assert answer.cancelled == (taken.id,)
        self.report("w.0", taken, "cancelled")
        waiting = self.client.lrange(keys.inboxes[2], -1, -1)[0].decode()
        assert do(cancel(keys, SETTINGS, waiting, "", b"x")) == "cancelled"
        assert do(producer_calls.forget(keys, [waiting])) == 1
        assert do(submit(keys, SETTINGS, [(waiting, b"{}")], priority=0)).known == set()

    def die_and_leave(self) -> None:
        keys, do = self.keys, self.do
        self.take("v.0", 1)
        self.client.zadd(keys.workers, {"v.0": 1})
        assert do(reassign(keys, SETTINGS, "v.0", most=100)).returned > 0
        self.client.hset(keys.lock, "later", "nobody#1")
        assert do(reconcile(keys, page=100)) == 1
        assert do(record_duties(keys, "w.0", ["reconcile"]))
        do(join(keys, SETTINGS, "x.0", "1", {"abilities": []}))
        self.take("x.0", 1, keep=1)
        do(join(keys, SETTINGS, "x.0", "2", {"abilities": []}))
        assert do(leave(keys, "x.0", "2", final=True)).left == 0

    def take(self, worker: str, want: int, keep: int = 0) -> tuple[Delivery, ...]:
        call = exchange(self.keys, SETTINGS, worker, "1", want=want, keep=keep)
        answer = self.do(call)
        assert answer is not None
        assert len(answer.tasks) == want
        return answer.tasks

    def report(
        self, worker: str, task: Delivery, verdict: Any, delay_ms: int = 0
    ) -> None:
        report = Report(task.id, task.token, verdict, b"outcome", delay_ms)
        call = exchange(
            self.keys, SETTINGS, worker, "1", want=0, keep=0, reports=[report]
        )
        answer = self.do(call)
        assert answer is not None
        assert answer.refused == ()
