"""Each script of the queue on three nodes, with its keys checked by the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

import workstealing.queue
from workstealing.drivers.sync import Driver
from workstealing.queue import listing, telling
from workstealing.queue.call import Call, Step
from workstealing.queue.consuming import exchange, park, release, steal
from workstealing.queue.handing import begin, find_able, hand_over
from workstealing.queue.keys import QueueKeys
from workstealing.queue.maintaining import (
    did,
    expire,
    idle,
    promote,
    reassign,
    reconcile,
    survey,
    unpark,
)
from workstealing.queue.presence import beat, join, leave
from workstealing.queue.producing import cancel, close, replay, submit
from workstealing.queue.reading import begun_at, counts, trace
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.attempt import Report, Taken

SETTINGS = QueueSettings()
RUNS = [f"run-{number}" for number in range(6)]
"""Enough runs that their slots are spread over all three nodes."""


class StrictDriver(Driver):
    """Runs scripts with a first line that makes the server refuse keys of two slots."""

    def __init__(self, client: RedisCluster) -> None:
        super().__init__(client)
        self.performed: set[str] = set()

    def _send(self, step: Step) -> Any:
        if not isinstance(step, Call):
            return super()._send(step)
        self.performed.add(step.script.name)
        return self.client.execute_command(
            "EVAL",
            f"#!lua\n{step.script.text}",
            len(step.keys),
            *step.keys,
            *step.arguments,
        )


@pytest.fixture
def strict(cluster_client: RedisCluster) -> StrictDriver:
    return StrictDriver(cluster_client)


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
    names = [value for value in vars(keys).values() if isinstance(value, str)]
    names += [*keys.inboxes, keys.deque("a.0"), keys.running("{a}"), keys.channel("x")]
    names += [keys.parked_for("{y}@1"), keys.log("{z}"), keys.notes("z")]

    assert len({cluster_client.keyslot(name) for name in names}) == 1


@pytest.mark.parametrize("driver", [Driver, StrictDriver], ids=["as it is", "strictly"])
@pytest.mark.parametrize("run", RUNS[:3])
def test_tasks_live_on_a_cluster(
    cluster_client: RedisCluster, key_prefix: str, run: str, driver: type[Driver]
) -> None:
    Story(driver(cluster_client), QueueKeys(key_prefix, run)).tell()


def test_the_story_leaves_no_script_out(strict: StrictDriver, key_prefix: str) -> None:
    Story(strict, QueueKeys(key_prefix, "run")).tell()

    folder = Path(workstealing.queue.__file__).parent / "lua"
    assert strict.performed == {path.stem for path in folder.glob("*.lua")}


class Story:
    """A life of a queue in which each script has something to do."""

    def __init__(self, driver: Driver, keys: QueueKeys) -> None:
        self.do = driver.call
        self.client: Any = driver.client
        self.keys = keys

    def tell(self) -> None:
        self.submit_and_take()
        self.park_and_return()
        self.hand_over_and_tell()
        self.steal_and_cancel()
        self.die_and_leave()
        seen = self.do(counts(self.keys))
        assert seen.unfinished == seen.tasks - seen.dead
        assert set(seen.leases) == {"w.0"}

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
        assert do(trace(keys, taken[0].id, channel="c")).worker == "v.0"
        assert do(begun_at(keys, "v.0", taken[0].id))
        self.report("v.0", taken[0], "done")
        self.report("v.0", taken[1], "dead")
        self.report("v.0", taken[2], "retry", 60_000)
        assert do(replay(keys, taken[1].id, drop=False))
        self.client.zadd(keys.later, {"later": 1, taken[2].id: 2})
        assert do(listing.ranked(keys.later, most=1)) == (("later", 1),)
        assert do(promote(keys, most=10)) == 2
        self.client.zadd(keys.outbox, {taken[0].id: 1})
        assert do(expire(keys, SETTINGS, most=10)) == 1
        assert do(close(keys, closed=True))
        assert do(close(keys, closed=False))

    def park_and_return(self) -> None:
        keys, do = self.keys, self.do
        parked, released = self.take("v.0", 2)
        assert do(park(keys, "v.0", parked, "x@1"))
        assert do(release(keys, "v.0", [released])) == 1
        assert do(survey(keys)).wanted == ("x@1",)
        (waited,) = do(listing.waited_for(keys, ["x@1"]))
        assert (waited.tasks, waited.workers) == (1, 2)
        assert do(unpark(keys, "x@1", most=10)) == 1

    def hand_over_and_tell(self) -> None:
        keys, do = self.keys, self.do
        (task,) = self.take("v.0", 1)
        assert do(find_able(keys, "x@1", but="v.0")) == "w.0"
        assert do(hand_over(keys, "v.0", task, "w.0"))
        (task,) = self.take("w.0", 1)
        assert do(begin(keys, "w.0", task))
        assert do(telling.log(keys, "w.0", task, 1, b"told"))
        assert do(telling.read_log(keys, task.id)).records == (b"told",)
        assert do(telling.await_log(keys, task.id, telling.BEGINNING, 0.01))
        assert not do(telling.await_log(keys, "silent", telling.BEGINNING, 0.01))
        assert do(telling.note(keys, "w.0", task, "checkpoint", b"7"))
        call = telling.noted(keys, task.id, task.envelope, "checkpoint")
        assert do(call) == b"7"
        assert do(telling.drop_notes(keys, task.id))
        self.report("w.0", task, "back")
        # It was given an urgent one first, if there was one.
        do(leave(keys, "w.0", "1", final=False))

    def steal_and_cancel(self) -> None:
        keys, do = self.keys, self.do
        assert do(idle(keys, ("v.0", "w.0"))) == ("w.0",)
        assert do(steal(keys, "v.0", "w.0", wake=True)) > 0
        taken = self.take("w.0", 1)[0]
        (held,) = do(listing.in_hand(keys, ["v.0", "w.0"], most=9))
        assert held[:2] == ("w.0", taken.id)
        (shown,) = do(listing.glance(keys, [taken.id], most=100))
        assert (shown.worker, shown.envelope) == ("w.0", taken.envelope)
        assert do(listing.crew(keys, ["v.0", "w.0"]))[1].running == 1
        assert do(listing.weigh([keys.task, keys.lock]))[0]
        assert do(cancel(keys, SETTINGS, taken.id, "w.0", b"x")) == "asked"
        assert do(beat(keys, SETTINGS, "w.0", "1")) == (taken.id,)
        self.report("w.0", taken, "cancelled")
        waiting = self.client.lrange(keys.inboxes[2], -1, -1)[0].decode()
        assert do(cancel(keys, SETTINGS, waiting, "", b"x")) == "cancelled"
        self.client.hdel(keys.done, waiting)
        self.client.zrem(keys.outbox, waiting)
        assert do(submit(keys, SETTINGS, [(waiting, b"{}")], priority=0)).known == set()

    def die_and_leave(self) -> None:
        keys, do = self.keys, self.do
        self.take("v.0", 1)
        self.client.zadd(keys.workers, {"v.0": 1})
        assert do(reassign(keys, SETTINGS, "v.0", b"dead", most=100)) > 0
        self.client.hset(keys.lock, "later", "nobody#1")
        assert do(reconcile(keys, page=100)) == 1
        assert do(did(keys, "w.0", ["reconcile"]))
        do(join(keys, SETTINGS, "x.0", "1", {"abilities": []}))
        self.take("x.0", 1, keep=1)
        do(join(keys, SETTINGS, "x.0", "2", {"abilities": []}))
        assert do(leave(keys, "x.0", "2", final=True))[1] == 0

    def take(self, worker: str, want: int, keep: int = 0) -> tuple[Taken, ...]:
        call = exchange(self.keys, SETTINGS, worker, "1", want=want, keep=keep)
        answer = self.do(call)
        assert answer is not None
        assert len(answer.tasks) == want
        return answer.tasks

    def report(self, worker: str, task: Taken, verdict: Any, delay_ms: int = 0) -> None:
        report = Report(task.id, task.token, verdict, b"outcome", delay_ms)
        call = exchange(
            self.keys, SETTINGS, worker, "1", want=0, keep=0, reports=[report]
        )
        answer = self.do(call)
        assert answer is not None
        assert answer.refused == ()
