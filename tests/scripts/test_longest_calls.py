"""No call holds the server for longer because more tasks wait.

The time that the server itself says it spent is compared between a short and a long
queue, five hundred times as long: a call that looks at all that waits would take some
hundred times as long, and even on a busy machine the others do not take ten times. The
same is done with payloads that are a thousand times as long, but for calls that hand
them out: how much those do is in `test_large_envelopes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

import workstealing
from workstealing.node.shared_state import place
from workstealing.queue.brief_calls import brief_exchange
from workstealing.queue.composition_calls import NewGroup, NewStep, submit_steps
from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.pause_calls import count_paused, pause, resume
from workstealing.queue.producer_calls import cancel, replay, submit
from workstealing.queue.unique_calls import UniqueRequest, submit_unique
from workstealing.queue.upkeep_calls import (
    expire,
    promote,
    reassign,
    reconcile,
    survey,
    unpark,
)
from workstealing.queue.worker_calls import leave, steal
from workstealing.tasks.attempt import Report
from workstealing.testing import Server

SHORT, LONG = 200, 100_000
TRIES = 5
ABILITY = "x@1"
# Commands that read or search all of a key, and what bounds the keys that scripts use
# them on: the numbers that people write, or that one worker holds. The first and the
# last of a list are found without a search.
READS_ALL = re.compile(
    r"redis\.call\('(?:LREM|LPOS|LINSERT|LSET|LINDEX|SORT|KEYS|SMEMBERS|HGETALL"
    r"|HKEYS|HVALS|SUNION|SDIFF|SINTER)', *(\w+)(?!, (?:0|-1)\))\b"
)
BOUNDED = {
    "abilities": "task names that live workers know",
    "declared_schedules": "schedules of the code",
    "deque": "what a worker asks for: its batch for each slot",
    "limits": "limits of the code",
    "paused": "task names that somebody paused",
    "permit_holders": "read only while there are a thousand at most",
    "permits": "read only while there are a thousand at most",
    "running": "what a worker holds",
    "stats": "names of counters",
    "upkeep": "names of duties",
    "KEYS": "stretches: ten times the names of tasks",
}
# What has no bound, and is searched for where a page begins by those who list or purge
# outcomes: no worker, and nobody who submits, waits for that.
SEARCHED_BY_PEOPLE = {"ended.lua": {"outcome_times"}}

Fill = Callable[[Any, int], None]


def inbox(queue: Any, number: int) -> None:
    queue.client.rpush(queue.keys.inboxes[1], *names(number))
    envelopes(queue, number)


def later(queue: Any, number: int) -> None:
    queue.client.zadd(queue.keys.later, dict.fromkeys(names(number), 1))
    envelopes(queue, number)


def parked(queue: Any, number: int) -> None:
    key = queue.keys.parked_for(ABILITY)
    queue.client.zadd(key, {name: n for n, name in enumerate(names(number))})
    queue.client.sadd(queue.keys.parked_abilities, ABILITY)
    queue.client.hset(queue.keys.parked, mapping=dict.fromkeys(names(number), ABILITY))
    envelopes(queue, number)


def dead(queue: Any, number: int) -> None:
    queue.client.zadd(queue.keys.dead, dict.fromkeys(names(number), 1))
    queue.client.hset(queue.keys.done, mapping=dict.fromkeys(names(number), b"{}"))
    envelopes(queue, number)


def cancelled(queue: Any, number: int) -> None:
    inbox(queue, number)
    queue.client.delete(queue.keys.task)
    queue.client.hset(queue.keys.cancelled, mapping=dict.fromkeys(names(number), 1))


def deque(queue: Any, number: int) -> None:
    """All are in the deque of a worker, which is a member, or was."""
    queue.join("rich")
    queue.client.rpush(queue.keys.deque("rich"), *names(number))
    queue.client.hset(queue.keys.lock, mapping=dict.fromkeys(names(number), "rich#1"))
    queue.client.zadd(queue.keys.loads, {"rich": number})
    envelopes(queue, number)


def dead_deque(queue: Any, number: int) -> None:
    deque(queue, number)
    queue.end_lease("rich")


def aside(queue: Any, number: int) -> None:
    """All were put aside, for their name is paused."""
    places = {name: f"x\0{n:016}" for n, name in enumerate(names(number))}
    queue.client.hset(queue.keys.paused, "x", 1)
    queue.client.zadd(queue.keys.aside, {f"{p}\0{i}": 0 for i, p in places.items()})
    queue.client.hset(queue.keys.paused_tasks, mapping=places)
    envelopes(queue, number)


def lines(queue: Any, number: int) -> None:
    """They wait in a hundred lines, with a limit for each and one for all."""
    limits = {"all": "1000000", "each": "1000000"}
    ids = names(number)
    for first in range(0, number, 1000):
        some = ids[first : first + 1000]
        each = [f"1\tfair{n % 10}\t\tall\teach={n % 100}" for n in range(len(some))]
        queue.submit(*some, lines=each, limits=limits)


def envelopes(queue: Any, number: int, *, payload: str = "") -> None:
    written = f'{{"v":1,"name":"x","version":1,"payload":"{payload}"}}'.encode()
    queue.client.hset(queue.keys.task, mapping=dict.fromkeys(names(number), written))


def names(number: int) -> list[str]:
    return [f"{n:06}" for n in range(number)]


def submitted_again(queue: Any, turn: int) -> Any:
    tasks = [(f"{100 * turn + n:06}", b"{}") for n in range(100)]
    return submit(queue.keys, queue.settings, tasks, priority=1)


def cancelled_one(queue: Any, turn: int, *, needs: str = "") -> Any:
    task_id = f"{100 + turn:06}"
    return cancel(queue.keys, queue.settings, task_id, "", b"{}", needs=needs)


def cancelled_parked(queue: Any, turn: int) -> Any:
    return cancelled_one(queue, turn, needs=ABILITY)


def taken(queue: Any, turn: int) -> Any:
    return queue.exchanging("w", want=20, keep=20)


def placed_by_another(queue: Any, turn: int) -> Any:
    return place(queue.keys, "w", [f"gone {n}" for n in range(20)])


def stolen(queue: Any, turn: int) -> Any:
    queue.join(f"poor {turn}")
    return steal(queue.keys, "rich", f"poor {turn}", most=20)


def left(queue: Any, turn: int) -> Any:
    return leave(queue.keys, "rich", "1", most=20, final=False)


def reassigned(queue: Any, turn: int) -> Any:
    return reassign(queue.keys, queue.settings, "rich", most=20)


def resumed(queue: Any, turn: int) -> Any:
    return resume(queue.keys, "x", goes_on=turn > 0, most=20)


def reported(queue: Any, turn: int) -> Any:
    """A thousand at once."""
    ids = [f"held {turn} {n}" for n in range(1000)]
    for key, value in ((queue.keys.task, b"{}"), (queue.keys.lock, "w#1")):
        queue.client.hset(key, mapping=dict.fromkeys(ids, value))
    queue.client.hset(queue.keys.running("w"), mapping=dict.fromkeys(ids, 1))
    reports = [Report(task_id, "1", "done", b"outcome") for task_id in ids]
    return queue.exchanging("w", reports=reports)


def brief(queue: Any, turn: int) -> Any:
    host = f"brief-{turn}"
    return brief_exchange(queue.keys, queue.settings, host, ("x@1",), want=9)


def submitted_uniquely(queue: Any, turn: int) -> Any:
    request = UniqueRequest(f"new {turn}", b"{}", True, 1, key=f"key {turn}")
    return submit_unique(queue.keys, queue.settings, request)


def submitted_in_steps(queue: Any, turn: int) -> Any:
    first = NewStep(f"first {turn}", b"{}", follower=f"then {turn}")
    then = NewStep(f"then {turn}", b"{}", waits=True)
    return submit_steps(
        queue.keys, queue.settings, [first, then], NewGroup(), whole=2, limits={}
    )


CASES: dict[str, tuple[Fill, Callable[[Any, int], Any]]] = {
    "submit what was cancelled": (cancelled, submitted_again),
    "cancel one in the inbox": (inbox, cancelled_one),
    "cancel a delayed one": (later, cancelled_one),
    "cancel a parked one": (parked, cancelled_parked),
    "take from the inbox": (inbox, taken),
    "take where much is due": (later, taken),
    "place what is gone": (inbox, placed_by_another),
    "promote": (later, lambda queue, turn: promote(queue.keys, most=20)),
    "unpark": (parked, lambda queue, turn: unpark(queue.keys, ABILITY, most=20)),
    "expire": (
        dead,
        lambda queue, turn: expire(queue.keys, queue.settings, most=20),
    ),
    "replay": (dead, lambda queue, turn: replay(queue.keys, f"{turn:06}", drop=False)),
    "trace": (inbox, lambda queue, turn: trace(queue.keys, f"{turn:06}")),
    "count": (inbox, lambda queue, turn: counts(queue.keys)),
    "survey": (parked, lambda queue, turn: survey(queue.keys, queue.settings)),
    "reconcile": (inbox, lambda queue, turn: reconcile(queue.keys, page=100)),
    "steal": (deque, stolen),
    "leave": (deque, left),
    "reassign": (dead_deque, reassigned),
    "pause": (inbox, lambda queue, turn: pause(queue.keys, "x")),
    "resume": (aside, resumed),
    "report": (inbox, reported),
    "take in a spare moment": (inbox, brief),
    "submit uniquely": (inbox, submitted_uniquely),
    "submit steps": (inbox, submitted_in_steps),
    "take from lines": (lines, taken),
    "submit where lines are": (lines, submitted_in_steps),
}
# What these do with envelopes is bounded in bytes, or is to hand them to people.
READS_ENVELOPES = {
    "take from the inbox",
    "take from lines",
    "take in a spare moment",
    "take where much is due",
    "trace",
}
# Of what was cancelled or is dead, there are no envelopes here.
HAS_NO_ENVELOPES = {"submit what was cancelled", "expire", "replay"}


@pytest.fixture(scope="module")
def client() -> Iterator[Redis]:
    """Of a server that counts the commands of nobody else."""
    with Server() as server, Redis.from_url(server.url) as client:
        yield client


@pytest.mark.parametrize("case", CASES)
def test_a_call_takes_no_longer_when_more_tasks_wait(
    case: str, client: Redis, scripted_queue: Callable[..., Any]
) -> None:
    fill, call = CASES[case]
    spent = []

    for number in (SHORT, LONG):
        client.flushall()
        queue = scripted_queue(client, f"{number}")
        fill(queue, number)
        queue.join("w", "other")
        tries = [microseconds(queue, call(queue, turn)) for turn in range(TRIES)]
        spent.append(min(tries))

    assert spent[1] < 10 * spent[0], f"{spent} µs"


@pytest.mark.parametrize(
    "case", sorted(CASES.keys() - READS_ENVELOPES - HAS_NO_ENVELOPES)
)
def test_a_call_takes_no_longer_when_payloads_are_large(
    case: str, client: Redis, scripted_queue: Callable[..., Any]
) -> None:
    fill, call = CASES[case]
    spent = []

    for size in (1_000, 1_000_000):
        client.flushall()
        queue = scripted_queue(client, f"{size}")
        fill(queue, SHORT)
        envelopes(queue, SHORT, payload="." * size)
        queue.join("w", "other")
        tries = [microseconds(queue, call(queue, turn)) for turn in range(TRIES)]
        spent.append(min(tries))

    assert spent[1] < 10 * spent[0], f"{spent} µs"


def test_an_exchange_puts_no_more_than_some_paused_tasks_aside(
    client: Redis, scripted_queue: Callable[..., Any]
) -> None:
    client.flushall()
    queue = scripted_queue(client, "paused")
    inbox(queue, LONG)
    queue.do(pause(queue.keys, "x"))
    queue.join("w")

    assert queue.take("w", 20) == ()

    # Four times five hundred, and those that it had taken before it saw that.
    assert 0 < queue.do(count_paused(queue.keys, "x")) <= 2100


def test_no_script_searches_or_reads_all_of_what_has_no_bound() -> None:
    package = Path(workstealing.__file__).parent
    read = {
        key
        for folder in ("queue", "node")
        for path in (package / folder / "lua").rglob("*.lua")
        for key in READS_ALL.findall(path.read_text())
        if key not in SEARCHED_BY_PEOPLE.get(path.name, ())
    }

    assert read == set(BOUNDED)


def microseconds(queue: Any, call: Any) -> int:
    """Return how long the server was busy with a script."""
    queue.client.script_load(call.script.text)
    queue.client.config_resetstat()
    queue.do(call)
    spent: int = queue.client.info("commandstats")["cmdstat_evalsha"]["usec"]
    return spent
