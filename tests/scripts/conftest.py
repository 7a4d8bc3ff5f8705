"""What tests of scripts share: a queue on two kinds of server, seen as a whole."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import pytest
from redis import Redis

from workstealing.drivers.sync_driver import Driver
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import Submitted, submit
from workstealing.queue.scripts import Script
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, RedisCommand
from workstealing.queue.worker_calls import Exchanged, exchange, join
from workstealing.tasks.attempt import Delivery, Report, Verdict
from workstealing.testing import Server

T = TypeVar("T")
State = dict[str, Any]
PAST = 1


CLOCK = f"clock-of-{os.getpid()}"


@functools.cache
def with_own_clock(script: Script) -> Script:
    """Return a script that reads the time from a key.

    Some choices depend on the time, such as which inbox comes first. With the real
    clock, the same steps would lead elsewhere when Hypothesis repeats them.
    """
    clock = (
        f"(function(ms) return {{math.floor(ms / 1000), ms % 1000 * 1000}} end)"
        f"(tonumber(redis.call('GET', '{CLOCK}')))"
    )
    text = script.text.replace("redis.call('TIME')", clock)
    sha = hashlib.sha1(text.encode()).hexdigest()
    return dataclasses.replace(script, text=text, sha=sha)


class ScriptedQueue:
    """A queue whose keys are all in sight; operations with what most tests want."""

    def __init__(self, client: Redis, name: str, **settings: int) -> None:
        self.client = client
        self.keys = QueueKeys(name, "run")
        self.settings = QueueSettings(**settings)
        self.now_ms = 0
        """If it is set, the time of scripts, which goes on a little with each."""
        self._driver = Driver(client)

    def do(self, call: Call[T] | RedisCommand[T]) -> T:
        if self.now_ms and isinstance(call, Call):
            self.now_ms += 7
            self.client.set(CLOCK, self.now_ms)
            call = dataclasses.replace(call, script=with_own_clock(call.script))
        return self._driver.call(call)

    def again(self, call: Call[T], *, but: Sequence[str] = ()) -> T:
        """Repeat a call as if its reply was lost; nothing changes, *but* some keys."""
        before = self.state()
        answer = self.do(call)
        after = self.state()
        for key in but:
            before.pop(key, None)
            after.pop(key, None)
        assert after == before
        return answer

    @staticmethod
    def envelope(task_id: str, priority: int = 1) -> bytes:
        return json.dumps({"id": task_id, "priority": priority}).encode()

    def submit(self, *ids: str, priority: int = 1, **more: Any) -> Submitted:
        tasks = [(task_id, self.envelope(task_id, priority)) for task_id in ids]
        call = submit(self.keys, self.settings, tasks, priority=priority, **more)
        return self.do(call)

    def join(
        self, *workers: str, incarnation: str = "1", abilities: Sequence[str] = ()
    ) -> None:
        for worker in workers:
            description = {"abilities": list(abilities)}
            self.do(join(self.keys, self.settings, worker, incarnation, description))

    def exchanging(
        self,
        worker: str,
        *,
        want: int = 0,
        keep: int = 0,
        incarnation: str = "1",
        reports: Sequence[Report] = (),
        held: Sequence[str] | None = None,
        renews: bool = True,
    ) -> Call[Exchanged | None]:
        return exchange(
            self.keys,
            self.settings,
            worker,
            incarnation,
            want=want,
            keep=keep,
            reports=reports,
            held=held,
            renews=renews,
        )

    def exchange(self, worker: str, **more: Any) -> Exchanged:
        answer = self.do(self.exchanging(worker, **more))
        assert answer is not None
        return answer

    def take(self, worker: str, want: int = 100, keep: int = 0) -> tuple[Delivery, ...]:
        return self.exchange(worker, want=want, keep=keep).tasks

    def report(
        self,
        worker: str,
        verdict: Verdict,
        *tasks: Delivery,
        outcome: bytes = b"outcome",
        delay_ms: int = 0,
    ) -> Exchanged:
        reports = [
            Report(task.id, task.token, verdict, outcome, delay_ms) for task in tasks
        ]
        return self.exchange(worker, reports=reports)

    def end_lease(self, worker: str) -> None:
        self.client.zadd(self.keys.workers, {worker: PAST}, xx=True)

    def set_outcome_times(self, times: Mapping[str, int]) -> None:
        """Let outcomes expire at other times, if they are there."""
        key = self.keys.outcome_times
        kept = [one.decode().rsplit(" ", 1) for one in self.client.lrange(key, 0, -1)]
        changed = sorted(
            (times.get(name, int(ms)), n) for n, (name, ms) in enumerate(kept)
        )
        self.client.delete(key)
        for ms, n in changed:
            self.client.rpush(key, f"{kept[n][0]} {ms}")

    def state(self) -> State:
        """Read all keys, without those of time: leases, upkeep, bell, events."""
        prefix = self.keys.prefix
        names = sorted(
            key.decode()
            for key in self.client.scan_iter(match=f"{prefix}*", count=1000)
        )
        pipeline = self.client.pipeline(transaction=False)
        for name in names:
            _READERS[_kind(name.removeprefix(prefix))](pipeline, name)
        state = {
            name.removeprefix(prefix): _plain(value)
            for name, value in zip(names, pipeline.execute(), strict=True)
        }
        state["workers"] = sorted(state.get("workers", ()))
        for key in ("history", "biographies"):
            if key in state:
                state[key] = {i: _TALLIES.sub("", it) for i, it in state[key].items()}
        for volatile in ("bell", "upkeep", "thefts", "releases"):
            state.pop(volatile, None)
        return state

    def waiting(self) -> list[str]:
        """Ids in the inboxes, urgent ones first."""
        state = self.state()
        return [i for inbox in range(3) for i in state.get(f"inbox:{inbox}", ())]

    def deque(self, worker: str) -> list[str]:
        deque: list[str] = self.state().get(f"deque:{worker}", [])
        return deque

    @staticmethod
    def put_aside(state: State) -> list[str]:
        """Ids of tasks whose names are paused, in order."""
        return [member.split("\0")[2] for member in sorted(state.get("aside", ()))]

    def check(self, state: State | None = None) -> State:
        """Compare each key with each other: whatever happened, they must agree."""
        state = self.state() if state is None else state
        tasks, locks = set(state.get("task", {})), state.get("lock", {})
        places = Counter(
            place
            for key, ids in state.items()
            if key.startswith(("inbox:", "deque:", "running:")) or key in _PLACES
            for place in ids
            if place in tasks
        )
        places.update(self.put_aside(state))
        places += Counter(
            member.rsplit("\0", 1)[1] for member in state.get("lines", ())
        )
        for task_id, number in state.get("cancelled", {}).items():
            if task_id in tasks:
                places[task_id] -= int(number)
        assert places == Counter(tasks), "each task is in exactly one place"
        assert not set(locks) - tasks, "a lock belongs to a task"
        held = {}
        for key, ids in state.items():
            if key.startswith(("deque:", "running:")):
                worker = key.split(":", 1)[1]
                held.update({i: worker for i in ids if i in tasks})
        assert {i: lock.rsplit("#", 1)[0] for i, lock in locks.items()} == held
        deques = {
            key.removeprefix("deque:"): len(ids)
            for key, ids in state.items()
            if key.startswith("deque:")
        }
        assert state.get("loads", {}) == deques
        members, known = set(state.get("members", {})), set(state["workers"])
        hosts = {name for name in known | set(held.values()) if name[:6] == "brief-"}
        assert known == members | hosts
        assert hosts == set(held.values()) - members, "a host is known by its task"
        abilities = Counter(
            ability
            for member in state.get("members", {}).values()
            for ability in json.loads(member.split("|", 1)[1])["abilities"]
        )
        assert state.get("abilities", {}) == {
            name: str(n) for name, n in abilities.items()
        }
        paused = state.get("paused_tasks", {})
        assert {f"{place}\0{one}" for one, place in paused.items()} == set(
            state.get("aside", ())
        )
        names = {place.split("\0")[0] for place in paused.values()}
        assert names <= set(state.get("paused", ())), "nothing is aside without a pause"
        parked = state.get("parked", {})
        for task_id, ability in parked.items():
            assert task_id in state[f"parked:{ability}"]
            assert ability in state["parked_abilities"]
        for key in _OF_TASKS:
            assert set(state.get(key, ())) <= tasks, f"{key} ends with its tasks"
        self._check_lines(state)
        named = Counter(ended_ids(state))
        named.subtract({i: int(n) for i, n in state.get("purged", {}).items()})
        assert min(named.values(), default=0) >= 0, "what is purged is left over"
        ended = set((+named).elements())
        assert max(named.values(), default=0) <= 1, "an outcome expires once"
        dead = set(state.get("dead", ()))
        assert set(state.get("done", ())) == ended | dead
        assert set(state.get("biographies", ())) <= ended, "it goes with its outcome"
        assert not ended & tasks
        self._check_uniques(state, dead)
        self._check_steps(state)
        return state

    def _check_uniques(self, state: State, dead: set[str]) -> None:
        """Who has a unique key says so; who says so has it, while that lasts."""
        windows = state.get("unique_windows", {})
        keys: dict[str, str] = state.get("uniques", {})
        has_key = {}
        for task_id, text in state.get("unique_of", {}).items():
            ends, key = text[0], text.split(":", 2)[2]
            if ends != "w" and not (ends == "d" and task_id in dead):
                assert key not in has_key, "one task has a unique key"
                has_key[key] = task_id
        held = {key: task_id for key, task_id in keys.items() if key not in windows}
        assert held == has_key
        assert set(windows) <= set(keys)

    @staticmethod
    def _check_steps(state: State) -> None:
        """Who waits, waits for somebody; and a mark ends with its task."""
        tasks, dead = set(state.get("task", ())), set(state.get("dead", ()))
        marks, groups = state.get("followers", {}), state.get("groups", {})
        assert set(marks) <= tasks | set(state.get("done", ()))
        awaited = Counter(m for i, m in marks.items() if m[0] != "n" and i not in dead)
        assert {i for i, m in marks.items() if m[0] != "n"} <= tasks - dead
        for step in state.get("steps", ()):
            if step in groups:
                left, total, failed, _, _ = map(int, groups[step].split(":"))
                assert 0 < left <= total
                assert 0 <= failed <= total - left
                is_whole = step not in state.get("group_times", ())
                assert not is_whole or awaited[f"g{step}"] == left
            else:
                assert awaited[f"c{step}"] == 1, "the step before it has not ended"

    @staticmethod
    def _check_lines(state: State) -> None:
        """Compare lines with their turns, and permits with those who hold them."""
        lines = {member.split("\0")[0] for member in state.get("lines", ())}
        placed = state.get("placed", {})
        assert lines <= set(placed), "a line with tasks is ready or blocked"
        waiting = [tuple(m.split("\0")) for m in state.get("blocked", ())]
        assert Counter((key, line) for key, _, line in waiting) == Counter(
            (key, line) for line, key in placed.items() if key
        )
        turns = {m for n in range(3) for m in state.get(f"turns:{n}", ())}
        ready = [m.split("\0")[2] for m in state.get("ready", ())]
        assert len(set(ready)) == len(ready)
        for line, key in placed.items():
            priority, fair, *_ = line.split("\t")
            is_head = state.get("heads", {}).get(f"{priority}\t{fair}") == line
            assert (line in turns) == (not key and (is_head or not fair))
            assert (line in ready) == bool(not key and fair and not is_head)
        holders = state.get("permit_holders", {})
        held = Counter(key for keys in holders.values() for key in keys.split("\t"))
        assert {key: int(n) for key, n in state.get("permits", {}).items()} == held
        assert set(holders) <= set(state.get("lock", {})), "who runs not holds nothing"
        for key in {key for key, _, _ in waiting}:
            name = key.split("=")[0]
            numbers = state["limits"][name].split()[0]
            is_rate = "/" in numbers
            refills = state.get("refills", ())
            if (is_rate and key in refills) or f"\t{name}" in refills:
                continue
            if is_rate or held[key] < int(numbers):
                assert any(
                    key in line.split("\t")[3:]
                    for line, waits_for in placed.items()
                    if not waits_for
                ), "a limit with room lets somebody in, a rate in time"


def ended_ids(state: State) -> list[str]:
    """Ids in the order of their ends, those of purged outcomes included."""
    return [one.rsplit(" ", 1)[0] for one in state.get("outcome_times", ())]


_PLACES = ("later", "dead", "parked", "steps")
_OF_TASKS = (
    *_PLACES,
    "history",
    "cancelling",
    "awaited",
    "priorities",
    "unique_of",
    "paused_tasks",
)
_SORTED = (
    *("later", "dead", "workers", "loads", "unique_windows", "ticks"),
    *("aside", "lines", "ready", "blocked", "rates", "refills", "group_times"),
)
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "list": lambda pipeline, key: pipeline.lrange(key, 0, -1),
    "hash": lambda pipeline, key: pipeline.hgetall(key),
    "set": lambda pipeline, key: pipeline.smembers(key),
    "stream": lambda pipeline, key: pipeline.xrange(key),
    "zset": lambda pipeline, key: pipeline.zrange(key, 0, -1, withscores=True),
}


# What follows the tallies of a history: when its events were.
_TALLIES = re.compile(r"(?<=\d):[nqtesfzhldbprcv~]\d*[^\n]*")


def _kind(name: str) -> str:
    if name.startswith(("inbox:", "deque:")) or name in ("bell", "outcome_times"):
        return "list"
    if name.startswith("log:") or name in ("thefts", "releases"):
        return "stream"
    if name in _SORTED or name.startswith(("turns:", "parked:")):
        return "zset"
    return "set" if name in ("cancelling", "parked_abilities") else "hash"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set):
        return {_plain(item) for item in value}
    if value and isinstance(value[0], (tuple, list)):
        return {_plain(member): score for member, score in value}
    return [_plain(item) for item in value]


@pytest.fixture(params=["fake_redis", "redis_client"], ids=["fakeredis", "embedded"])
def any_redis(request: pytest.FixtureRequest) -> Redis:
    return request.getfixturevalue(request.param)


@pytest.fixture
def make_queue(
    any_redis: Redis, key_prefix: str
) -> Iterator[Callable[..., ScriptedQueue]]:
    """Make queues; after the test the keys of each must agree."""
    numbers, made = count(), []

    def make(**settings: int) -> ScriptedQueue:
        queue = ScriptedQueue(any_redis, f"{key_prefix}-{next(numbers)}", **settings)
        made.append(queue)
        return queue

    yield make
    for queue in made:
        queue.check()


@pytest.fixture
def alone() -> Iterator[ScriptedQueue]:
    """A queue on a server that counts the commands of nobody else."""
    with Server() as server, Redis.from_url(server.url) as client:
        queue = ScriptedQueue(client, "alone", retention_ms=0)
        yield queue
        queue.check()


@pytest.fixture(scope="session")
def scripted_queue() -> type[ScriptedQueue]:
    """For those who bring a client of their own."""
    return ScriptedQueue


@pytest.fixture
def queue(make_queue: Callable[..., ScriptedQueue]) -> ScriptedQueue:
    return make_queue()
