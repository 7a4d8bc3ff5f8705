"""Any interleaving of calls, with lost replies, repeats and late arrivals.

The model knows what was submitted, how it ended and what each worker believes; what is
where is read from the server, before and after each call, and must agree with itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeVar

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

from workstealing.errors import NotUnique
from workstealing.queue.brief_calls import BriefExchanged, brief_exchange
from workstealing.queue.composition_calls import NewGroup, NewStep, submit_steps
from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.limit_calls import set_limit
from workstealing.queue.pause_calls import pause, resume
from workstealing.queue.producer_calls import cancel, replay, submit
from workstealing.queue.schedule_calls import DueSchedule, Firing, fire
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call
from workstealing.queue.unique_calls import (
    UniqueRequest,
    UniqueVerdict,
    submit_unique,
)
from workstealing.queue.upkeep_calls import (
    expire,
    idle,
    promote,
    reassign,
    reconcile,
    survey,
    unpark,
)
from workstealing.queue.worker_calls import (
    Departure,
    Exchanged,
    begin,
    find_capable,
    join,
    leave,
    park,
    release,
    route,
    steal,
)
from workstealing.tasks.attempt import Delivery, Report
from workstealing.tasks.outcome import outcome_of_deaths, outcome_unknown

T = TypeVar("T")

_SUBMITS = ("submit", "submit_unique", "submit_steps")
_EXCHANGES = ("exchange", "brief_exchange")
_MAY_COME_LATE = ("release", "steal", "park", "route", *_EXCHANGES, *_SUBMITS)
UNIQUE_IDS = ["u0", "u1", "u2"]
IDS = [*(f"t{n}" for n in range(9)), *UNIQUE_IDS]
NAMES = ["x", "y"]
WORKERS = ["a.0", "a.1", "b.c.0"]
ABILITIES = ["x@1", "y@2"]
# Processes that run brief tasks in spare moments, and what they can run.
HOSTS = ["brief-a.0", "brief-b.0"]
BRIEF = [["x@1", "y@1"], ["x@1", "y@1"], ["y@1"]]
# What follows the priority in the name of a line: fair key, weight, limit keys.
LINES = ["", "", "\tx\t", "\ty\t4", "\t\t\ta=1", "\t\t\ta=1\tb", "\tx\t\tb"]
LINES += ["\t\t\tr=1", "\tx\t\ta=2\tr=1", "\t\t\tb\ta=1"]
LIMITS = {"a": "1", "b": "2", "r": "2/3600000"}
# Tasks that an exchange asks for; they put a line off as far:
# none weighs less than 1.
MOST_WANT = MOST_AHEAD = 3
GIVEN_UP = outcome_of_deaths(QueueSettings().deaths)
UNKNOWN = outcome_unknown()
LEFT = outcome_unknown(left=True)
CANCELLED = b"cancelled"
REPLACED = b"replaced"
UNIQUE_KEYS = ["key one", "key two"]

ids = st.sampled_from(IDS)
workers = st.sampled_from(WORKERS)
lines = st.lists(st.sampled_from(LINES), min_size=8, max_size=8)
abilities = st.sampled_from(ABILITIES)
few = st.integers(1, 3)
numbers = st.integers(0, 59)
wishes = st.lists(
    st.sampled_from(
        ("hold", "done", "dead", "cancelled", "expired", "retry", "later", "back")
    ),
    min_size=3,
    max_size=3,
)
rarely = st.sampled_from((False, False, False, True))


@dataclass
class Hand:
    """What an incarnation of a worker believes."""

    name: str
    incarnation: str
    held: dict[str, Delivery] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    is_unsure: bool = False


class QueueMachine(RuleBasedStateMachine):
    def __init__(self, make_queue: Callable[..., Any]) -> None:
        super().__init__()
        self.make_queue = make_queue
        self.numbers = iter(range(1_000_000))
        self.hands: dict[str, Hand] = {}
        self.hosts = {name: Hand(name, "") for name in HOSTS}
        self.ghosts: list[Hand] = []
        self.sent: list[Call[Any]] = []
        self.tasks: dict[str, bytes] = {}
        self.outcomes: dict[str, str] = {}
        self.stale: set[str] = set()
        self.dead: set[str] = set()
        self.ended = dict.fromkeys(
            ("done", "cancelled", "expired", "dead", "submitted"), 0
        )
        self.attempts: dict[str, int] = {}
        self.deaths: dict[str, int] = {}
        self.cancelling: set[str] = set()
        self.frozen: set[str] = set()
        self.tick = 1
        self.compositions = 0
        self.follower: dict[str, str] = {}
        self.group_of: dict[str, str] = {}
        self.left: dict[str, int] = {}
        self.incomplete: set[str] = set()
        self.steps: dict[str, int] = {}
        self.begun_steps = 0
        self.limits = dict(LIMITS)

    @initialize(
        retention=st.sampled_from([3_600_000, 3_600_000, 0]),
        names=st.sampled_from([WORKERS[:2], WORKERS, WORKERS[:1], []]),
        keep=st.integers(0, 4),
        priority=st.integers(0, 2),
        ends=st.sampled_from(["s", "d", "w"]),
        lines=st.one_of(st.just([""] * 8), lines),
    )
    def open(
        self,
        retention: int,
        names: list[str],
        keep: int,
        priority: int,
        ends: str,
        lines: list[str],
    ) -> None:
        self.queue = self.make_queue(retention_ms=retention)
        self.queue.now_ms = 1_800_000_000_000
        client, keys = self.queue.client, self.queue.keys
        client.zadd(keys.ticks, {"s": self.tick})
        client.hset(keys.schedules, "s", "{}")
        self.state = self.queue.state()
        for name in names:
            self.join(name, ABILITIES[:1])
        for name, key in zip(UNIQUE_IDS, UNIQUE_KEYS, strict=False):
            self.submit_unique(name, key, ends, "keep", priority, 0, again=False)
        self.submit(IDS[:8], priority, 0, lines)
        for _ in names:
            self.exchange(keep, 1, keep, [], False, False)

    # -- producers

    @rule(behind=st.integers(0, 2), priority=st.integers(0, 2), lines=lines)
    def fire(self, behind: int, priority: int, lines: list[str]) -> None:
        """Fire a tick, or one that others have fired meanwhile."""
        tick = self.tick - behind
        name, line = f"k{tick}", f"{priority}{lines[0]}" if lines[0] else ""
        envelope = self.envelope(name, priority)
        firing = Firing(tick, name, envelope, priority, 0, line, self.limits)
        due = DueSchedule(b"s", str(tick), b"{}")
        call = fire(
            self.queue.keys,
            due,
            expected=str(tick),
            following=tick + 1,
            firing=firing,
        )
        before = self.state
        assert self.perform(call) == ("moved" if behind else "fired")
        if behind:
            assert self.state == before, "a tick is fired once"
        else:
            self.tick += 1
            self.tasks[name] = envelope
            self.ended["submitted"] += 1

    @rule(
        names=st.lists(ids, min_size=1, max_size=4),
        priority=st.integers(0, 2),
        delay=st.sampled_from([0, 0, 0, 1_000_000]),
        lines=lines,
    )
    def submit(
        self, names: list[str], priority: int, delay: int, lines: list[str]
    ) -> None:
        tasks = [(name, self.envelope(name, priority)) for name in names]
        call = submit(
            self.queue.keys,
            self.queue.settings,
            tasks,
            priority=priority,
            delay_ms=delay,
            lines=[line and f"{priority}{line}" for line in lines[: len(names)]],
            limits=self.limits,
        )
        reply, before = self.perform(call), self.state
        old = self.learn(call, before)
        known = {n for n, name in enumerate(names) if name in (*old, *names[:n])}
        assert (reply.verdict, reply.known) == ("ok", known)

    @rule(
        name=st.sampled_from([*UNIQUE_IDS, *IDS[6:]]),
        key=st.sampled_from([*UNIQUE_KEYS, *UNIQUE_KEYS, ""]),
        ends=st.sampled_from(["s", "d", "w"]),
        on_conflict=st.sampled_from(["keep", "replace", "reschedule"]),
        priority=st.integers(0, 2),
        delay=st.sampled_from([0, 0, 1_000_000]),
        again=st.booleans(),
    )
    def submit_unique(
        self,
        name: str,
        key: str,
        ends: Any,
        on_conflict: str,
        priority: int,
        delay: int,
        again: bool,
    ) -> None:
        number = next(self.numbers)
        envelope = {
            **json.loads(self.envelope(name, priority)),
            "number": number,
        }
        request = UniqueRequest(
            name,
            json.dumps(envelope).encode(),
            is_drawn=False,
            priority=priority,
            delay_ms=delay,
            key=key,
            ends=ends,
            window_ms=3_600_000,
            on_conflict=on_conflict,
            again=again,
            replaced=REPLACED,
        )
        reply = self.ask_unique(request)
        if reply.verdict == "ended":
            assert again
            assert name in self.outcomes
            request = replace(request, seen=reply.detail)
            reply = self.ask_unique(request)
        if reply.verdict == "moved":
            seen = self.queue.do(trace(self.queue.keys, reply.detail))
            request = replace(request, worker=seen.worker, needs=seen.needs)
            reply = self.ask_unique(request)
        assert reply.verdict in ("new", "known")
        # Sent once more, because the reply was lost, it changes nothing but a delay.
        before = self.state
        repeated = self.ask_unique(request)
        # One that was parked, or in a deque, has left that place by being rescheduled.
        has_moved = repeated == UniqueVerdict("moved", reply.detail)
        assert repeated == reply or (has_moved and on_conflict == "reschedule")
        assert set(self.state.get("later", ())) == set(before.get("later", ()))
        assert {**self.state, "later": {}} == {**before, "later": {}}

    def ask_unique(self, request: UniqueRequest) -> UniqueVerdict:
        call = submit_unique(self.queue.keys, self.queue.settings, request)
        before = self.state
        known = self.why_known(request, before)
        reply = self.perform(call)
        self.learn(call, before)
        if reply.verdict in ("new", "known"):
            assert (reply.detail, reply.state) == known
        if reply.verdict != "new":
            assert self.state.get("task") == before.get("task")
        return reply

    def why_known(self, request: UniqueRequest, before: Any) -> tuple[str, str]:
        """Return which task stands in the way of another, and how; or nothing."""
        name, is_dead = request.id, request.id in self.dead
        if self.tasks.get(name) == request.envelope and not is_dead:
            return "", ""
        if name in self.tasks and not is_dead:
            return name, "live"
        if name in self.outcomes and not request.again:
            return name, "dead" if is_dead else "done"
        other = before.get("uniques", {}).get(request.key)
        if other is None or before.get("unique_windows", {}).get(request.key) == 1:
            return "", ""
        if other in self.tasks and other not in self.dead:
            lock = before.get("lock", {}).get(other, "#").rsplit("#", 1)[0]
            is_running = other in before.get(f"running:{lock}", {})
            is_replaced = request.on_conflict == "replace" and not is_running
            return ("", "") if is_replaced else (other, "live")
        if request.again:
            return "", ""
        if other in self.outcomes:
            return other, "dead" if other in self.dead else "done"
        return other, "unknown"

    @precondition(lambda self: self.state.get("unique_windows"))
    @rule(key=st.sampled_from(UNIQUE_KEYS))
    def end_window(self, key: str) -> None:
        """Let a window be over; some call clears it away."""
        self.queue.client.zadd(self.queue.keys.unique_windows, {key: 1}, xx=True)
        self.state = self.queue.state()

    @precondition(lambda self: self.compositions < 5)
    @rule(
        kind=st.sampled_from(["chain", "group", "then"]),
        size=few,
        priority=st.integers(0, 2),
        delay=st.sampled_from([0, 0, 0, 1_000_000]),
        lines=lines,
        is_whole=st.sampled_from([True, True, True, False]),
    )
    def compose(
        self,
        kind: str,
        size: int,
        priority: int,
        delay: int,
        lines: list[str],
        is_whole: bool,
    ) -> None:
        """Submit a chain, a group, or a group with a step; or a part of a group."""
        first = 10 * self.compositions
        self.compositions += 1
        names = [f"p{first + n}" for n in range(size + 1)]

        def step(n: int, **more: Any) -> NewStep:
            line = lines[n] and f"{priority}{lines[n]}"
            envelope = self.envelope(names[n], priority)
            return NewStep(names[n], envelope, priority, 0, delay, line, **more)

        if kind == "chain":
            followers = [*names[1:], ""]
            steps = [
                step(n, follower=followers[n], waits=n > 0) for n in range(size + 1)
            ]
            group = NewGroup()
        else:
            steps = [step(0, waits=True)] if kind == "then" else []
            steps += [
                step(n, follower=names[0], is_member=True) for n in range(1, size + 1)
            ]
            group = NewGroup(names[0], size if is_whole else size + 1, is_last=is_whole)
        call = submit_steps(
            self.queue.keys,
            self.queue.settings,
            steps,
            group,
            whole=len(steps),
            limits=LIMITS,
        )
        before = self.state
        assert self.perform(call) == "ok"
        self.learn(call, before)
        assert self.queue.again(call) == "ok"

    @precondition(lambda self: self.incomplete & set(self.steps))
    @rule()
    def abandon(self) -> None:
        """Let a producer have died before all of its group was submitted."""
        for group in sorted(self.incomplete & set(self.steps)):
            self.queue.client.zadd(self.queue.keys.group_times, {group: 1})
            self.perform(expire(self.queue.keys, self.queue.settings, most=9))
            self.skip(group)
            self.left.pop(group)
            self.incomplete.discard(group)

    @precondition(lambda self: any(name[0] == "p" for name in self.tasks))
    @rule(number=numbers)
    def cancel_one_of_a_composition(self, number: int) -> None:
        names = sorted(name for name in self.tasks if name[0] == "p")
        self.cancel(names[number % len(names)], False)

    @rule(name=ids, is_wrong=rarely)
    def cancel(self, name: str, is_wrong: bool) -> None:
        queue, before = self.queue, self.state
        seen = queue.do(trace(queue.keys, name))
        worker = seen.worker
        if is_wrong:
            worker = WORKERS[0] if worker != WORKERS[0] else ""
        holder = before.get("lock", {}).get(name, "#").rsplit("#", 1)[0]
        reply = self.perform(
            cancel(
                queue.keys, queue.settings, name, worker, CANCELLED, needs=seen.needs
            )
        )
        if name not in self.tasks:
            assert reply == ("ended" if name in self.outcomes else "unknown")
        elif name in self.dead:
            assert reply == "ended"
        elif worker != holder:
            assert reply == "moved"
        elif name in before.get(f"running:{holder}", {}):
            assert reply == "asked"
            self.cancelling.add(name)
        else:
            assert reply == "cancelled"
            self.end(name, "cancelled", CANCELLED.decode())

    @precondition(lambda self: self.dead)
    @rule(number=numbers, drop=st.booleans())
    def replay_one(self, number: int, drop: bool) -> None:
        self.replay(sorted(self.dead)[number % len(self.dead)], drop)

    def replay(self, name: str, drop: bool) -> None:
        key = self.unique_key(self.state, name)
        other = self.state.get("uniques", {}).get(key)
        if not drop and other in self.state.get("unique_of", {}):
            before = self.state
            with pytest.raises(NotUnique):
                self.perform(replay(self.queue.keys, name, drop=drop))
            assert self.queue.state() == before
            return
        assert self.perform(replay(self.queue.keys, name, drop=drop)) == (
            name in self.dead
        )
        if name in self.dead:
            self.dead.discard(name)
            if name in self.state.get("done", {}):
                assert drop, "only what a step needs is kept"
                self.stale.add(name)
            else:
                self.outcomes.pop(name, None)
            self.attempts.pop(name, None)
            self.deaths.pop(name, None)
            if drop:
                del self.tasks[name]
            elif self.group_of.get(name) in self.steps:
                # Its group waits for it once more.
                self.follower[name] = f"g{self.group_of[name]}"
                self.left[self.group_of[name]] += 1

    @rule(name=st.sampled_from([*NAMES, None]))
    def pause(self, name: str | None) -> None:
        field = name or "*"
        is_new = self.state.get("paused", {}).get(field, "0") == "0"
        assert self.perform(pause(self.queue.keys, name)) == is_new
        assert self.state["paused"][field] != "0"

    @precondition(lambda self: self.state.get("paused"))
    @rule(name=st.sampled_from([*NAMES, None]), most=few, is_whole=st.booleans())
    def resume(self, name: str | None, most: int, is_whole: bool) -> None:
        """Resume, whole or a part: the one who does it may die."""
        before, waiting = self.state, self.waiting()
        line = self.line(name)
        field = name or "*"
        was = before.get("paused", {}).get(field)
        call = resume(self.queue.keys, name, goes_on=False, most=most)
        reply = self.perform(call)
        moved = reply.moved
        while is_whole and reply.has_more:
            call = resume(self.queue.keys, name, goes_on=True, most=most)
            reply = self.perform(call)
            moved += reply.moved
        if was is None:
            assert self.state == before
            return
        assert len(self.line(name)) == len(line) - moved
        assert self.in_order(waiting, self.waiting())
        for inbox in range(3):
            front = self.state.get(f"inbox:{inbox}", [])
            had = before.get(f"inbox:{inbox}", [])
            back = front[: len(front) - len(had)]
            assert front[len(back) :] == had, "they come to the front"
            assert self.in_order(back, line), "in the order in which they waited"
        if is_whole:
            assert field not in self.state.get("paused", {})

    # -- workers

    @precondition(lambda self: len(self.hands) < len(WORKERS))
    @rule(number=numbers, able=st.sampled_from([[], *combinations(ABILITIES, 1)]))
    def come(self, number: int, able: Sequence[str]) -> None:
        absent = [name for name in WORKERS if name not in self.hands]
        self.join(absent[number % len(absent)], able)

    @precondition(lambda self: self.hands)
    @rule(number=numbers)
    def replace(self, number: int) -> None:
        self.join(self.hand(number).name, ABILITIES)

    def join(self, name: str, able: Sequence[str]) -> None:
        hand = Hand(name, f"i{next(self.numbers)}")
        had = dict(self.state.get(f"running:{name}", {}))
        rescued = self.perform(
            join(
                self.queue.keys,
                self.queue.settings,
                name,
                hand.incarnation,
                {"abilities": list(able)},
            )
        )
        assert len(rescued.given_up) == self.die(had)
        self.haunt(name)
        self.hands[name] = hand

    @precondition(lambda self: self.hands)
    @rule(
        number=numbers,
        want=st.integers(0, 3),
        keep=st.integers(0, 5),
        wishes=wishes,
        is_lost=rarely,
        is_repeated=rarely,
    )
    def exchange(
        self,
        number: int,
        want: int,
        keep: int,
        wishes: list[str],
        is_lost: bool,
        is_repeated: bool,
    ) -> None:
        hand = self.hand(number)
        for task_id, wish in zip(list(hand.held), wishes, strict=False):
            if wish != "hold":
                hand.reports.append(self.report(hand.held.pop(task_id), wish))
        # Empty hands say so: a client that repeats a command by itself tells nobody
        # that a reply was lost.
        is_sure = hand.held and not hand.is_unsure
        held = None if is_sure else list(hand.held)
        call = self.queue.exchanging(
            hand.name,
            want=want,
            keep=keep,
            incarnation=hand.incarnation,
            reports=hand.reports,
            held=held,
        )
        reply = self.exchanged(call, hand, want, held)
        if is_repeated:
            reply = self.exchanged(call, hand, want, held)
        if is_lost:
            hand.is_unsure = True
            return
        hand.reports, hand.is_unsure = [], False
        for task in reply.tasks:
            # It may have lost a task by a part of its lease's end, and get it again.
            assert hand.held.get(task.id) != task
        hand.held.update({task.id: task for task in reply.tasks})

    @precondition(lambda self: self.hands)
    @rule(number=numbers, want=few, keep=st.integers(0, 5))
    def take(self, number: int, want: int, keep: int) -> None:
        self.exchange(number, want, keep, [], False, False)

    @precondition(lambda self: self.holders())
    @rule(number=numbers, wishes=wishes)
    def finish(self, number: int, wishes: list[str]) -> None:
        place = list(self.hands).index(self.holder(number).name)
        self.exchange(place, 0, 0, wishes, False, False)

    @rule(name=ids, worker=workers, token=st.sampled_from(["0", "1", "2", "x", ""]))
    def forge(self, name: str, worker: str, token: str) -> None:
        """Report what was never taken, or by another's token."""
        hand = self.hands.get(worker) or Hand(worker, "nobody")
        if self.state.get("lock", {}).get(name) == f"{worker}#{token}":
            return
        report = Report(name, token, "done", b"forged")
        call = self.queue.exchanging(
            worker, incarnation=hand.incarnation, reports=[report]
        )
        # The same call may have come late before, when the token was the right one.
        is_old = self.state.get("done", {}).get(name) == "forged"
        reply = self.exchanged(call, hand, 0, None)
        assert reply is None or reply.refused == (() if is_old else (name,))

    @precondition(lambda self: self.ghosts)
    @rule(number=numbers, want=st.integers(0, 2))
    def haunting(self, number: int, want: int) -> None:
        """Let one that was replaced or taken for dead come back late."""
        queue, before = self.queue, self.state
        ghost = self.ghosts[number % len(self.ghosts)]
        reports = [self.report(task, "done") for task in ghost.held.values()]
        call = queue.exchanging(
            ghost.name, want=want, incarnation=ghost.incarnation, reports=reports
        )
        assert self.perform(call) is None
        leaving = leave(queue.keys, ghost.name, ghost.incarnation, final=True)
        assert self.perform(leaving) == Departure(0, 0)
        tasks = list(ghost.held.values())
        assert self.perform(release(queue.keys, ghost.name, tasks)) == 0
        assert self.state == before

    @precondition(lambda self: self.holders())
    @rule(number=numbers, first=st.integers(0, 1), is_lost=rarely)
    def release(self, number: int, first: int, is_lost: bool) -> None:
        hand = self.holder(number)
        name = hand.name
        tasks = [hand.held.pop(task_id) for task_id in list(hand.held)[first:]]
        before, waited = self.deque(name), set(self.in_lines())
        reply = self.perform(release(self.queue.keys, name, tasks))
        after = self.deque(name)
        back = after[: len(after) - len(before)]
        assert after[len(back) :] == before
        assert back == [task.id for task in tasks if task.id in back]
        in_line = {task.id for task in tasks} & set(self.in_lines()) - waited
        assert reply == len(back) + len(in_line)
        hand.is_unsure = hand.is_unsure or is_lost

    @precondition(lambda self: self.holders())
    @rule(number=numbers, ability=abilities)
    def park(self, number: int, ability: str) -> None:
        hand = self.holder(number)
        name = hand.name
        task = hand.held.pop(next(iter(hand.held)))
        is_own = self.state.get("lock", {}).get(task.id) == f"{name}#{task.token}"
        assert self.perform(park(self.queue.keys, name, task, ability)) == is_own

    @precondition(lambda self: self.holders())
    @rule(number=numbers)
    def begin(self, number: int) -> None:
        hand = self.holder(number)
        task = next(iter(hand.held.values()))
        is_own = task.id in self.in_hand(self.state, hand)
        assert self.perform(begin(self.queue.keys, hand.name, task)) == is_own
        running = self.state.get(f"running:{hand.name}", {})
        assert not is_own or running[task.id].startswith("!")

    @precondition(lambda self: self.holders())
    @rule(number=numbers, ability=abilities)
    def route(self, number: int, ability: str) -> None:
        hand, queue = self.holder(number), self.queue
        name, deaths = hand.name, dict(self.deaths)
        to = queue.do(find_capable(queue.keys, ability, but=name))
        living = {
            worker
            for worker, lease in queue.client.zrange(
                queue.keys.workers, 0, -1, withscores=True
            )
            if lease > 1
        }
        able = {
            worker
            for worker, member in self.state.get("members", {}).items()
            if f'"{ability}"' in member and worker.encode() in living
        }
        assert (to in able - {name}) if able - {name} else to == ""
        if not to:
            return
        task = hand.held.pop(next(iter(hand.held)))
        is_own = self.state.get("lock", {}).get(task.id) == f"{name}#{task.token}"
        had = self.deque(to)
        assert self.perform(route(queue.keys, name, task, to)) == is_own
        assert self.deque(to) == ([task.id, *had] if is_own else had)
        assert self.deaths == deaths

    @precondition(lambda self: self.state.get("loads"))
    @rule(number=numbers, thief=workers, wake=st.booleans())
    def rob(self, number: int, thief: str, wake: bool) -> None:
        loaded = sorted(self.state["loads"])
        self.steal(loaded[number % len(loaded)], thief, wake)

    def steal(self, victim: str, thief: str, wake: bool) -> None:
        before = self.deque(victim)
        had = self.deque(thief)
        moved = self.perform(steal(self.queue.keys, victim, thief, wake=wake))
        if victim == thief or had or thief not in self.hands:
            assert moved == 0
            return
        if self.is_paused("*"):
            assert moved == 0
            assert self.deque(victim) == before
            return
        half = len(before) // 2
        able = [self.able(victim), self.able(thief)]
        fit = [
            name
            for name in before[half:]
            if able[0] == able[1] or f"{self.name(name)}@1" in able[1]
        ]
        assert self.deque(thief) == fit
        assert self.deque(victim) == [name for name in before if name not in fit]
        assert moved == len(fit)

    @precondition(lambda self: self.hands)
    @rule(number=numbers, most=few, final=st.booleans())
    def leave(self, number: int, most: int, final: bool) -> None:
        hand = self.hand(number)
        name = hand.name
        call = leave(self.queue.keys, name, hand.incarnation, most=most, final=final)
        before = self.waiting()
        had = dict(self.state.get(f"running:{name}", {}))
        begun_steps = self.begun_steps
        departure = self.perform(call)
        back, left = departure.returned, departure.left
        gone = had.keys() - self.state.get(f"running:{name}", {}).keys()
        begun = [task_id for task_id in gone if had[task_id].startswith("!")]
        for task_id in begun:
            self.end(task_id, "dead", LEFT.decode())
        assert sorted(one.id for one in departure.given_up) == sorted(begun)
        begun_steps = self.begun_steps - begun_steps
        assert len(self.waiting()) == len(before) + back - len(begun) + begun_steps
        assert self.in_order(before, self.waiting())
        running = self.state.get(f"running:{name}", {})
        assert left == len(self.deque(name)) + (len(running) if final else 0)
        assert (name in self.state["workers"]) == (left > 0 or not final)
        if final:
            hand.held.clear()
            hand.is_unsure = True
        if left == 0 and final:
            self.haunt(name)

    # -- hosts with a spare moment

    @rule(
        name=st.sampled_from(HOSTS),
        able=st.sampled_from([*BRIEF, []]),
        want=st.integers(1, 4),
        wish=st.sampled_from(("done", "done", "dead", "retry", "later", "back")),
        number=numbers,
        overran=rarely,
        is_lost=rarely,
        is_repeated=rarely,
    )
    def spare_a_moment(
        self,
        name: str,
        able: list[str],
        want: int,
        wish: str,
        number: int,
        overran: bool,
        is_lost: bool,
        is_repeated: bool,
    ) -> None:
        """Settle what a host has run, or hand it back, and take a few tasks."""
        host = self.hosts[name]
        for task in reversed(host.held.values()):
            host.reports.append(self.report(task, wish))
        host.held.clear()
        loaded = sorted(self.state.get("loads", {}))
        call = brief_exchange(
            self.queue.keys,
            self.queue.settings,
            name,
            able,
            want=want,
            reports=host.reports,
            victim=loaded[number % len(loaded)] if loaded else "",
            overran=host.reports[-1].id if overran and host.reports else "",
        )
        reply = self.brief_exchanged(call, able)
        if is_repeated:
            reply = self.brief_exchanged(call, able)
        if is_lost:
            return
        host.reports = []
        host.held.update({task.id: task for task in reply.tasks})

    @precondition(lambda self: any(host.held for host in self.hosts.values()))
    @rule(number=numbers, is_repeated=rarely)
    def leave_a_task_behind(self, number: int, is_repeated: bool) -> None:
        """Hand back all but one, which runs on until the lease of its host ends."""
        hosts = [host for host in self.hosts.values() if host.held]
        host = hosts[number % len(hosts)]
        kept, *others = host.held.values()
        call = brief_exchange(
            self.queue.keys,
            self.queue.settings,
            host.name,
            (),
            reports=[self.report(task, "back") for task in reversed(others)],
            overran=kept.id,
            runs_on=True,
        )
        for _ in range(1 + is_repeated):
            self.brief_exchanged(call, [], kept.id)
        host.held.clear()

    @precondition(lambda self: set(HOSTS) & set(self.state["workers"]))
    @rule(name=st.sampled_from(HOSTS))
    def kill_a_host(self, name: str) -> None:
        """Let a host die in mid-task; it may have been frozen, and report late."""
        self.queue.end_lease(name)
        self.reassign(name, 9)
        assert name not in self.state["workers"]

    # -- misfortune

    @precondition(lambda self: self.hands)
    @rule(number=numbers, most=few)
    def crash(self, number: int, most: int) -> None:
        """Let a lease end; who finds the dead gives back, perhaps a part."""
        name = self.hand(number).name
        self.queue.end_lease(name)
        self.reassign(name, most)

    @precondition(lambda self: self.hands)
    @rule(number=numbers)
    def freeze(self, number: int) -> None:
        """Let a lease end, but the worker come back as it was."""
        self.frozen.add(self.hand(number).name)
        self.queue.end_lease(self.hand(number).name)

    @precondition(lambda self: self.sent)
    @rule(number=numbers)
    def arrive_late(self, number: int) -> None:
        """Let a call arrive once more, long after others that were sent later."""
        call = self.sent[number % len(self.sent)]
        before = self.state
        self.queue.do(call)
        self.state = self.queue.state()
        if call.script.name != "exchange" or call.arguments[8] == -1:
            for hand in self.hands.values():
                had, has = self.in_hand(before, hand), self.in_hand(self.state, hand)
                assert had == has, "what a worker knows that it holds, it keeps"
        for hand in self.hands.values():
            held = set(self.state.get(f"running:{hand.name}", {}))
            hand.is_unsure = hand.is_unsure or held != set(hand.held)
        self.learn(call, before)

    # -- upkeep

    @precondition(lambda self: self.frozen)
    @rule(most=few)
    def find_the_dead(self, most: int) -> None:
        for name in sorted(self.frozen):
            self.reassign(name, most)

    def reassign(self, name: str, most: int) -> None:
        queue, before = self.queue, self.state
        lease = queue.client.zscore(queue.keys.workers, name)
        had = dict(before.get(f"running:{name}", {}))
        deque, waiting = self.deque(name), self.waiting()
        rescued = self.perform(reassign(queue.keys, queue.settings, name, most=most))
        reply = rescued.returned
        if lease is not None and lease > 1:
            assert reply == -1
            assert self.state == before
            return
        assert reply == min(most, len(deque) + len(had))
        kept = self.deque(name)
        assert kept == deque[: len(kept)]
        for task_id in self.state.get(f"running:{name}", {}):
            del had[task_id]
        begun_steps = self.begun_steps
        given_up = self.die(had)
        assert len(rescued.given_up) == given_up
        begun_steps = self.begun_steps - begun_steps
        assert len(self.waiting()) == len(waiting) + reply - given_up + begun_steps
        assert self.in_order(waiting, self.waiting())
        if name not in self.state["workers"]:
            self.haunt(name)
            self.frozen.discard(name)

    @precondition(lambda self: self.state.get("loads"))
    @rule()
    def rebalance(self) -> None:
        queue = self.queue
        seen = self.perform(survey(queue.keys))
        for worker in seen.dead:
            assert queue.client.zscore(queue.keys.workers, worker) == 1
        depths = [len(self.deque(worker)) for worker in seen.rich]
        assert depths == sorted(depths, reverse=True)
        assert all(depth >= 2 for depth in depths)
        starving = self.perform(idle(queue.keys, seen.living)) if seen.living else ()
        for worker in starving:
            assert not self.deque(worker)
            assert f"running:{worker}" not in self.state
        for victim, thief in zip(seen.rich, starving, strict=False):
            self.steal(victim, thief, True)

    @precondition(lambda self: len(self.state.get("lock", ())) > 2)
    @rule(page=few)
    def reconcile(self, page: int) -> None:
        before = self.state
        assert self.perform(reconcile(self.queue.keys, page=page)) == 0
        assert self.state == before

    @precondition(lambda self: self.state.get("later"))
    @rule(names=st.lists(ids, unique=True, min_size=1), most=few)
    def promote(self, names: list[str], most: int) -> None:
        queue = self.queue
        queue.client.zadd(queue.keys.later, dict.fromkeys(names, 1), xx=True)
        self.state = queue.state()
        before = self.state.get("later", {})
        due = [name for name, score in before.items() if score == 1]
        refills = self.state.get("refills", {}).values()
        renewed = min(most, sum(at == 1 for at in refills))
        promoted = self.perform(promote(queue.keys, most=most)) - renewed
        assert promoted == min(most, len(due))
        left = self.state.get("later", {})
        assert set(before) - set(left) <= set(due)

    @precondition(lambda self: self.state.get("refills"))
    @rule(is_upkeep=st.booleans())
    def refill(self, is_upkeep: bool) -> None:
        """Let time pass for those that wait for a rate."""
        self.pass_time()
        self.state = self.queue.state()
        if is_upkeep:
            before = len(self.state["refills"])
            assert self.perform(promote(self.queue.keys, most=9)) >= before

    def pass_time(self) -> None:
        keys, client = self.queue.keys, self.queue.client
        client.delete(keys.rates)
        for key in client.zrange(keys.refills, 0, -1):
            client.zadd(keys.refills, {key: 1})

    @rule(most=few)
    def deploy(self, most: int) -> None:
        """Let submissions from now on say other numbers of their limits."""
        self.limits = {"a": str(most), "b": "2", "r": f"{most}/3600000"}

    @rule(name=st.sampled_from(sorted(LIMITS)), most=few, is_reset=st.booleans())
    def set_limit(self, name: str, most: int, is_reset: bool) -> None:
        given = f"{most}/3600000" if "/" in LIMITS[name] else str(most)
        numbers = "" if is_reset else given
        known = self.state.get("limits", {}).get(name)
        is_known = known is not None
        call = set_limit(self.queue.keys, name, numbers)
        assert self.perform(call).is_known == is_known
        in_force = self.state.get("limits", {}).get(name)
        if known is not None:
            of_code = known.split()[-1]
            assert in_force == (of_code if is_reset else f"{given} {of_code}")

    @precondition(lambda self: self.outcomes)
    @rule(number=numbers, most=few, dead=st.booleans())
    def expire(self, number: int, most: int, dead: bool) -> None:
        queue = self.queue
        names = sorted(self.outcomes)[number % len(self.outcomes) :]
        past = dict.fromkeys(names, 1)
        if dead:
            queue.client.zadd(queue.keys.dead, past, xx=True)
        else:
            queue.set_outcome_times(past)
        over = [
            name for name in names if name in (self.dead if dead else self.outcomes)
        ]
        if dead:
            self.stale.update(over)
        else:
            self.stale.update(name for name in over if name not in self.dead)
        self.state = queue.state()
        forgotten = self.perform(expire(queue.keys, queue.settings, most=most))
        assert forgotten <= 3 * most

    @precondition(lambda self: self.state.get("parked_abilities"))
    @rule(ability=abilities, most=few)
    def unpark(self, ability: str, most: int) -> None:
        parked = self.state.get("parked", {})
        mine = [name for name, need in parked.items() if need == ability]
        is_able = ability in self.state.get("abilities", {})
        returned = self.perform(unpark(self.queue.keys, ability, most=most))
        assert returned <= (min(most, len(mine)) if is_able else 0)
        assert len(parked) - returned == len(self.state.get("parked", {}))

    # -- what must hold

    @invariant()
    def each_key_agrees_with_each_other(self) -> None:
        state = self.queue.check(self.state)
        self.forget_the_stale(state)
        assert state.get("task", {}) == {
            name: envelope.decode() for name, envelope in self.tasks.items()
        }
        assert state.get("done", {}) == self.outcomes
        assert set(state.get("dead", {})) == self.dead
        assert set(state.get("steps", {})) == set(self.steps)
        assert state.get("cancelling", set()) == self.cancelling
        stats = state.get("stats", {})
        for name in self.ended.keys() - {"submitted"}:
            assert int(stats.get(name, 0)) == self.ended[name], name
        for name, text in state.get("history", {}).items():
            attempts, deaths, _ = map(int, text.split(":"))
            assert attempts == self.attempts.get(name, 0), name
            assert deaths == self.deaths.get(name, 0), name

    @rule()
    def count(self) -> None:
        seen = self.queue.do(counts(self.queue.keys))
        assert seen.tasks == len(self.tasks)
        assert seen.assigned == len(self.state.get("lock", {}))
        assert seen.unfinished == self.unfinished()
        assert seen.steps == len(self.steps)
        assert seen.stats.get("submitted", 0) == self.ended["submitted"]
        assert seen.paused == len(self.queue.put_aside(self.state))

    def teardown(self) -> None:
        """Let everybody die and one worker do the rest: nothing must be left over."""
        if not hasattr(self, "queue"):
            return
        queue = self.queue
        for name in (*WORKERS, *HOSTS):
            queue.end_lease(name)
            queue.do(reassign(queue.keys, queue.settings, name, most=100))
        queue.join("last", abilities=ABILITIES)
        for ability in ABILITIES:
            queue.do(unpark(queue.keys, ability, most=100))
            queue.do(unpark(queue.keys, ability, most=100))
        for group in self.incomplete:
            queue.client.zadd(queue.keys.group_times, {group: 1}, xx=True)
        queue.do(expire(queue.keys, queue.settings, most=9))
        waited = set(self.steps)
        queue.do(resume(queue.keys, None, goes_on=False))
        for name in NAMES:
            queue.do(resume(queue.keys, name, goes_on=False))
        done: list[str] = []
        for _ in range(9):
            names = dict.fromkeys([*IDS, *self.tasks], 1)
            queue.client.zadd(queue.keys.later, names, xx=True)
            while tasks := queue.take("last"):
                queue.report("last", "done", *tasks)
                done += [task.id for task in tasks]
                queue.check()
            self.pass_time()
        state = queue.check()
        assert len(done) == len(set(done))
        assert set(state.get("task", {})) == set(state.get("dead", {}))
        over = set(done) | set(state.get("dead", {}))
        assert over <= set(self.tasks)
        assert set(self.tasks) - over <= waited, "only a step may be left out"
        left = {
            "deque:",
            "running:",
            "inbox:",
            "parked",
            "later",
            "lock",
            "cancelling",
            "cancelled",
            "paused",
            "aside",
            "lines",
            "turns:",
            "ready",
            "heads",
            "placed",
            "blocked",
            "permits",
            "permit_holders",
            "refills",
            "steps",
        }
        assert not [key for key in state if key.startswith(tuple(left))]
        assert set(state.get("unique_of", {})) <= set(state.get("dead", {}))
        assert set(state.get("uniques", {})) == set(state.get("unique_windows", {}))
        windows = dict.fromkeys(UNIQUE_KEYS, 1)
        queue.client.zadd(queue.keys.unique_windows, windows, xx=True)
        queue.do(expire(queue.keys, queue.settings, most=9))
        assert "uniques" not in queue.check()

    # -- how it is done

    def perform(self, call: Call[T]) -> T:
        before = self.state
        reply = self.queue.do(call)
        self.state = self.queue.state()
        self.check_standing(before)
        if call.script.name in _MAY_COME_LATE:
            self.sent.append(call)
        return reply

    def exchanged(
        self, call: Call[Exchanged | None], hand: Hand, want: int, held: Any
    ) -> Any:
        before = self.state
        reply = self.perform(call)
        self.learn(call, before)
        if reply is None:
            assert hand.name not in self.hands
            return None
        after, mine = self.state, f"running:{hand.name}"
        for key in set(before) | set(after):
            is_own = key.endswith(f":{hand.name}")
            if key.startswith(("deque:", "running:")) and not is_own:
                assert before.get(key) == after.get(key), "others keep what they have"
        tasks = [task.id for task in reply.tasks]
        running = after.get(mine, {})
        assert len(tasks) <= want
        self.check_permits(before)
        assert set(tasks) <= set(running)
        for task in reply.tasks:
            self.check_taken(task, hand.name)
        if any(self.deaths.get(task_id, 0) for task_id in tasks):
            assert len(tasks) == 1, "a suspect is taken alone"
        # One under suspicion waits until nothing else is held, and others wait for it.
        is_alone = bool(running) and not self.deaths.keys() <= self.dead
        aside = [
            i
            for i in self.queue.put_aside(after)
            if i not in self.queue.put_aside(before)
        ]
        if want and not tasks and not is_alone and not self.is_paused("*"):
            # One that was put aside gave back permits, for which others are woken.
            held_back = self.in_lines(is_blocked=not aside)
            waiting = set(self.waiting()) - set(held_back)
            alive = [name for name in waiting if name in self.tasks]
            assert not alive, "who gets nothing leaves nothing"
            assert not self.deque(hand.name)
        is_share = int(after.get("control", {}).get("token", 1)) * 40503 % 65536 < 8192
        # One that was cancelled and came again may be found where it was before.
        lasting = [t for t in reply.tasks if t.id not in before.get("cancelled", {})]
        if not is_share and any(
            json.loads(task.envelope)["priority"] for task in lasting
        ):
            urgent = after.get("inbox:0", [])
            assert not set(urgent) & set(self.tasks), "urgent ones come first"
        assert all(self.is_paused(self.name(name)) for name in aside)
        is_hindered = any(self.deaths.get(i, 0) for i in self.tasks)
        is_hindered = is_hindered or bool(after.get("paused"))
        self.check_turns(before, tasks, is_hindered)
        if held is None:
            self.check_order(before, hand.name, tasks)
        elif not want:
            back = list(before.get(mine, {}))
            back = [i for i in back if i not in running and i in self.deque(hand.name)]
            assert self.deque(hand.name) == back + before.get(f"deque:{hand.name}", [])
        assert reply.unfinished == self.unfinished()
        assert reply.held_back == len(self.queue.put_aside(after))
        assert reply.limited <= len(self.in_lines(is_blocked=True))
        assert set(reply.cancelled) == self.cancelling & set(running)
        return reply

    def brief_exchanged(
        self, call: Call[BriefExchanged], able: list[str], kept: str = ""
    ) -> BriefExchanged:
        before, (name, *_) = self.state, call.arguments
        held = [i for i in before.get(f"running:{name}", ()) if i == kept]
        victim = f"deque:{call.arguments[3]}"
        reply = self.perform(call)
        self.learn(call, before)
        after = self.state
        for key in set(before) | set(after):
            is_own = key.endswith(f":{name}") or key == victim
            if key.startswith(("deque:", "running:")) and not is_own:
                assert before.get(key) == after.get(key), "others keep what they have"
        taken = [task.id for task in reply.tasks]
        assert sorted(after.get(f"running:{name}", ())) == sorted([*held, *taken])
        gone = [*taken, *self.queue.put_aside(after)]
        left = [i for i in before.get(victim, []) if i not in gone]
        assert after.get(victim, []) == left, "a victim keeps the others, in order"
        self.check_permits(before)
        for task, ability in zip(reply.tasks, reply.abilities, strict=True):
            self.check_taken(task, str(name))
            assert ability == f"{self.name(task.id)}@1"
            assert self.fits(task.id, able)
        assert set(reply.cancelled) == self.cancelling & set(taken)
        suspects = [i for i in taken if self.deaths.get(i, 0)]
        assert not suspects or taken == suspects[:1], "a suspect runs alone"
        if able and not taken and not self.is_paused("*"):
            waiting = [i for n in range(3) for i in after.get(f"inbox:{n}", [])]
            assert not [i for i in waiting if i in self.tasks and self.fits(i, able)], (
                "who gets nothing leaves nothing that fits"
            )
        is_hindered = any(self.deaths.get(i, 0) for i in self.tasks)
        self.check_turns(before, taken, is_hindered or bool(after.get("paused")))
        return reply

    def fits(self, name: str, able: list[str]) -> bool:
        """Return whether a host may run a task."""
        is_suspect = bool(self.deaths.get(name, 0) and self.state.get("members"))
        is_too_long = name in self.state.get("too_long", {})
        is_held_back = is_suspect or is_too_long or self.is_paused(self.name(name))
        return f"{self.name(name)}@1" in able and not is_held_back

    def check_permits(self, before: Any) -> None:
        after = self.state
        for key, number in after.get("permits", {}).items():
            most = int(after["limits"][key.split("=")[0]].split()[0])
            had = int(before.get("permits", {}).get(key, 0))
            assert int(number) <= max(most, had), "no more run than permitted"

    def check_taken(self, task: Delivery, worker: str) -> None:
        """Check a task that somebody was given just now."""
        assert task.envelope == self.tasks[task.id]
        assert task.id not in self.steps, "nothing is begun before its turn"
        assert self.state["lock"][task.id] == f"{worker}#{task.token}"
        assert task.attempt == self.attempts.get(task.id, 0) + 1
        unique = self.state.get("unique_of", {}).get(task.id, "")
        assert not unique.startswith("s"), "who is started is not unique any more"
        assert not self.is_paused("*"), "nothing of a paused queue is taken"
        assert not self.is_paused(self.name(task.id)), "nor of a paused name"

    def check_order(self, before: Any, name: str, tasks: list[str]) -> None:
        """Compare a deque: taken from the front, filled at the back, in order."""
        had, has = before.get(f"deque:{name}", []), self.deque(name)
        aside = self.queue.put_aside(self.state)
        left = [i for i in had if i not in tasks and i not in aside]
        assert has[: len(left)] == left
        fresh = has[len(left) :]
        waited = [i for n in range(3) for i in before.get(f"inbox:{n}", [])]
        assert self.in_order([i for i in fresh if i in waited], waited)

    def check_standing(self, before: Any) -> None:
        """Prove, with `check_turns`, that no line starves that has room.

        A line in turns stands at most MOST_AHEAD behind the turn R that was reached,
        and at most MOST_WANT before it. Whoever comes, or comes back, stands at R or
        later; R never falls; nobody is served whose turn is later; a line that is given
        k tasks moves on by k / weight. So while a line stands, of each other line at
        most weight * (MOST_AHEAD + MOST_WANT) tasks are taken before it is served, and
        MOST_WANT more each time that the other one comes anew, which puts R up by 1.
        """
        for priority in range(3):
            had = before.get(f"turns:{priority}", {})
            reached_before, reached = self.reached(before, priority)
            assert reached >= reached_before, "turns do not go back"
            for line, turn in self.state.get(f"turns:{priority}", {}).items():
                assert turn >= reached - MOST_WANT, "who stands is not left behind"
                assert turn <= reached + MOST_AHEAD, "nor is his turn far away"
                is_newcomer = line not in had
                assert not is_newcomer or turn >= reached_before, "who comes goes last"

    def check_turns(self, before: Any, tasks: list[str], is_hindered: bool) -> None:
        taken = Counter(
            member.split("\0")[0]
            for member in before.get("lines", ())
            if member.split("\0")[2] in tasks
        )
        for priority in range(3):
            had = before.get(f"turns:{priority}", {})
            has = self.state.get(f"turns:{priority}", {})
            reached_before, reached = self.reached(before, priority)
            for line in had.keys() & taken.keys():
                assert reached >= had[line], "a turn that was served is reached"
                group = line.rsplit("\t", len(line.split("\t")) - 2)[0] + "\0"
                behind = [m for m in before.get("ready", ()) if m.startswith(group)]
                assert not {*sorted(behind)[:1]} & {*self.state.get("ready", ())}, (
                    "lines of one fair key take turns"
                )
            for line in had.keys() & has.keys():
                if taken[line]:
                    weight = float(line.split("\t")[2] or 1)
                    gone_on = has[line] - had[line] + 1e-5
                    assert gone_on >= taken[line] / weight, "what is given counts"
                elif not is_hindered:
                    assert reached <= max(reached_before, has[line]), (
                        "nobody goes before one whose turn is earlier"
                    )

    def reached(self, before: Any, priority: int) -> tuple[float, float]:
        """Return the turn that the lines of a priority had come to, and have now."""
        was, now = (
            float(state.get("control", {}).get(f"turn:{priority}", 0))
            for state in (before, self.state)
        )
        return was, now

    def learn(self, call: Call[Any], before: Any) -> set[str]:
        """Apply a submission, or the reports of an exchange by the locks it found."""
        known: set[str] = set()
        if call.script.name == "submit_unique":
            self.learn_unique(call, before)
        if call.script.name == "submit":
            last = 8 + 2 * int(call.arguments[6])
            names, envelopes = call.arguments[8:last:2], call.arguments[9:last:2]
            for name, envelope in zip(names, envelopes, strict=True):
                assert isinstance(name, str)
                assert isinstance(envelope, bytes)
                if name in self.tasks or name in self.outcomes:
                    known.add(name)
                else:
                    self.tasks[name] = envelope
                    self.ended["submitted"] += 1
        if call.script.name == "submit_steps":
            self.learn_steps(call, before)
        if call.script.name not in _EXCHANGES:
            return known
        locks, arguments = dict(before.get("lock", {})), call.arguments
        # How many strings stand before the reports.
        place = 9 if call.script.name == "exchange" else 10
        first = place + 1 + max(0, int(arguments[place]))
        for i in range(first, len(arguments), 5):
            name, token, verdict, outcome, _ = arguments[i : i + 5]
            assert isinstance(name, str)
            assert isinstance(outcome, bytes)
            if locks.pop(name, None) != f"{arguments[0]}#{token}":
                continue
            if verdict == "retry":
                self.attempts[name] = self.attempts.get(name, 0) + 1
            elif verdict != "back":
                self.end(name, str(verdict), outcome.decode())
        if call.script.name == "exchange":
            self.forget_begun(arguments, before, locks)
        return known

    def forget_begun(self, arguments: Any, before: Any, locks: dict[str, str]) -> None:
        """Give up what was begun, must not run twice, and is not held any more."""
        worker, incarnation, number = arguments[0], arguments[1], int(arguments[9])
        member = before.get("members", {}).get(worker, "")
        if number < 0 or not member.startswith(f"{incarnation}|"):
            return
        held = arguments[11 : 10 + number]
        for name, begun in before.get(f"running:{worker}", {}).items():
            is_mine = locks.get(name, "").startswith(f"{worker}#")
            if begun.startswith("!") and is_mine and name not in held:
                self.end(name, "dead", UNKNOWN.decode())

    def learn_steps(self, call: Call[Any], before: Any) -> None:
        """Apply the submission of a composition, all of it or nothing."""
        group, members, _, is_last = call.arguments[:4]
        count = int(call.arguments[8])
        values = call.arguments[9 : 9 + 8 * count]
        steps = [values[n : n + 8] for n in range(0, len(values), 8)]
        names = {str(step[0]) for step in steps}
        fresh = set(self.state.get("task", {})) - set(before.get("task", {}))
        if not names & fresh:
            return
        assert names <= fresh, "all of it or nothing"
        for name, envelope, _, _, delay, _, mark, waits in steps:
            assert isinstance(name, str)
            assert isinstance(envelope, bytes)
            self.tasks[name] = envelope
            self.outcomes.pop(name, None)
            self.ended["submitted"] += 1
            if mark:
                self.follower[name] = str(mark)
            if str(mark)[:1] == "g":
                self.group_of[name] = str(group)
            if waits:
                self.steps[name] = int(delay)
        if group:
            self.left[str(group)] = int(members)
            if not is_last:
                self.incomplete.add(str(group))

    def hand_over(self, name: str, how: str) -> None:
        """Count the end of a task that something may wait for."""
        mark = self.follower.pop(name, "")
        step = mark[1:]
        if mark[:1] == "g":
            if step not in self.left:
                return
            self.left[step] -= 1
            if self.left[step]:
                return
        elif mark and how != "done":
            self.skip(step)
            return
        if mark and step in self.steps:
            self.begun_steps += self.steps.pop(step) == 0

    def skip(self, step: str) -> None:
        """Let a step end that is not begun, with all that wait for it."""
        if step in self.steps:
            self.end(step, "cancelled", self.state.get("done", {}).get(step, ""))

    def learn_unique(self, call: Call[Any], before: Any) -> None:
        """Apply a submission that may have been kept out, by what it left behind."""
        name, envelope, key = (call.arguments[n] for n in (0, 1, 8))
        assert isinstance(name, str)
        assert isinstance(envelope, bytes)
        is_there = before.get("task", {}).get(name) == envelope.decode()
        is_letter = is_there and name in before.get("dead", {})
        tasks = self.state.get("task", {})
        if tasks.get(name) != envelope.decode():
            return
        if is_there and (not is_letter or name in self.state.get("dead", {})):
            return
        for gone in set(self.tasks) - set(tasks):
            assert gone == before["uniques"][key]
            self.end(gone, "cancelled", REPLACED.decode())
        self.outcomes.pop(name, None)
        self.stale.discard(name)
        self.dead.discard(name)
        self.attempts.pop(name, None)
        self.deaths.pop(name, None)
        self.tasks[name] = envelope
        self.ended["submitted"] += 1

    @staticmethod
    def unique_key(state: Any, name: str) -> str:
        text: str = state.get("unique_of", {}).get(name, "::")
        return text.split(":", 2)[2]

    def die(self, running: dict[str, str]) -> int:
        """Let a worker be dead that had these in its hands; return who died too."""
        given_up = 0
        for task_id, begun in running.items():
            self.deaths[task_id] = self.deaths.get(task_id, 0) + 1
            if begun.startswith("!"):
                self.end(task_id, "dead", UNKNOWN.decode())
                given_up += 1
            elif self.deaths[task_id] >= 3:
                self.end(task_id, "dead", GIVEN_UP.decode())
                given_up += 1
        return given_up

    def end(self, name: str, how: str, outcome: str) -> None:
        assert name in self.tasks, "nothing ends twice"
        assert name not in self.dead
        self.ended[how] += 1
        self.cancelling.discard(name)
        self.steps.pop(name, None)
        if how == "dead":
            self.dead.add(name)
            self.outcomes[name] = outcome
            self.hand_over(name, how)
            return
        del self.tasks[name]
        self.attempts.pop(name, None)
        self.deaths.pop(name, None)
        if self.queue.settings.retention_ms:
            self.outcomes[name] = outcome
        elif name in self.state.get("done", {}):
            # It is kept only for the step that takes it.
            self.outcomes[name] = outcome
            self.stale.add(name)
        self.hand_over(name, how)

    def forget_the_stale(self, state: Any) -> None:
        for name in list(self.stale):
            is_letter = name in self.dead
            if is_letter and name not in state.get("dead", {}):
                self.dead.discard(name)
                del self.tasks[name]
                self.attempts.pop(name, None)
                self.deaths.pop(name, None)
            if name not in state.get("done", {}):
                self.stale.discard(name)
                self.outcomes.pop(name, None)
                if name in self.dead:
                    self.dead.discard(name)
                    del self.tasks[name]
                    self.attempts.pop(name, None)
                    self.deaths.pop(name, None)

    def report(self, task: Delivery, wish: str) -> Report:
        verdict: Any = "retry" if wish == "later" else wish
        outcome = f"{task.id}#{next(self.numbers)}".encode()
        if verdict in ("retry", "back"):
            outcome = b""
        return Report(
            task.id, task.token, verdict, outcome, int(wish == "later") * 10**6
        )

    def hand(self, number: int) -> Hand:
        return list(self.hands.values())[number % len(self.hands)]

    @staticmethod
    def in_hand(state: Any, hand: Hand) -> set[str]:
        """Name what a worker knows that it holds, and does hold."""
        running, locks = state.get(f"running:{hand.name}", {}), state.get("lock")
        return {
            task.id
            for task in hand.held.values()
            if task.id in running and locks[task.id] == f"{hand.name}#{task.token}"
        }

    def holders(self) -> list[Hand]:
        return [hand for hand in self.hands.values() if hand.held]

    def holder(self, number: int) -> Hand:
        holders = self.holders()
        return holders[number % len(holders)]

    def haunt(self, name: str) -> None:
        if name in self.hands:
            self.ghosts.append(self.hands.pop(name))

    @staticmethod
    def name(task_id: str) -> str:
        """Return the name of a task: that of every other one is the same."""
        return NAMES[int(task_id[1:]) % 2]

    def envelope(self, task_id: str, priority: int) -> bytes:
        fields = {"name": self.name(task_id), "version": 1, "id": task_id}
        return json.dumps({**fields, "priority": priority}).encode()

    def is_paused(self, field: str) -> bool:
        return bool(self.state.get("paused", {}).get(field, "0") != "0")

    def line(self, name: str | None) -> list[str]:
        return [
            one for one in self.queue.put_aside(self.state) if self.name(one) == name
        ]

    def able(self, worker: str) -> list[str]:
        member = self.state["members"][worker].partition("|")[2]
        able: list[str] = json.loads(member)["abilities"]
        return able

    def unfinished(self) -> int:
        parked = len(self.state.get("parked", {}))
        return len(self.tasks) - len(self.dead) - parked - len(self.steps)

    def deque(self, name: str) -> list[str]:
        deque: list[str] = self.state.get(f"deque:{name}", [])
        return deque

    def waiting(self) -> list[str]:
        inboxes = [self.state.get(f"inbox:{n}", []) for n in range(3)]
        return [task_id for inbox in inboxes for task_id in inbox] + self.in_lines()

    def in_lines(self, is_blocked: bool = False) -> list[str]:
        """Name the tasks in lines, or only those in lines that are blocked."""
        members = [member.split("\0") for member in self.state.get("lines", ())]
        placed = self.state.get("placed", {})
        return [i for line, _, i in members if not is_blocked or placed[line]]

    @staticmethod
    def in_order(few: list[str], many: list[str]) -> bool:
        rest = iter(many)
        return all(name in rest for name in few)


# Examples are the same each time: only changed scripts need all, in `make slow`.
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "extent", ["some", pytest.param("many", marks=pytest.mark.slow)]
)
def test_nothing_is_lost_nor_completed_twice_whatever_happens(
    make_queue: Callable[..., Any], request: pytest.FixtureRequest, extent: str
) -> None:
    is_fake = "fakeredis" in request.node.name
    some, many = (8, 20) if is_fake else (60, 150)
    run_state_machine_as_test(
        lambda: QueueMachine(make_queue),
        settings=settings(
            max_examples=many if extent == "many" else some,
            stateful_step_count=60,
            deadline=None,
            derandomize=True,
            # To shrink a failure takes minutes; it is told as it was found.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
