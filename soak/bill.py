"""Whether the promises were kept: the ledger beside what Redis has.

accepted = done + failed + dead + cancelled + expired + waiting. What a failover may
lose by the documentation is counted apart: only what was written shortly before it,
and only where no replica was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from soak import app
from soak.crowding import look_for_crowds
from soak.ledger import Entry
from soak.producer import GROUP_SIZES
from soak.stage import Stage
from workstealing import connect
from workstealing.client.queue_internals import internals_of
from workstealing.errors import RedisUnavailable
from workstealing.tasks.outcome import TaskOutcome

__all__ = ("Bill", "make_bill")

# A replica that hangs counts as one for so long: `repl_timeout`, and the looks of both.
_LAG = 7.0
# One that is frozen notes what it has done so much later.
_LATE = 8.0
# Tasks of which a producer that dies learns nothing.
_MOST_TASKS = {"chain": 3, "group": max(GROUP_SIZES) + 1}
_SHOWN = 5
_MOST_TRIES = 100


@dataclass
class Bill:
    """What was found, and which promises were broken."""

    ends: Counter[str] = field(default_factory=Counter)
    """How many accepted tasks ended how."""
    groups: int = 0
    """How many groups there were."""
    notes: dict[str, object] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def check(self, promise: str, wrong: Iterable[object]) -> None:
        """Note what is against a promise, if anything is."""
        found = list(wrong)
        if found:
            shown = ", ".join(map(str, found[:_SHOWN]))
            self.broken.append(f"{promise}: {len(found)} wrong: {shown}")


def make_bill(stage: Stage) -> Bill:
    """Compare the ledger with Redis, when all is calm."""
    events = app.ledger.read()
    bill, found = Bill(), _Found(events, stage)
    _account(bill, found)
    _check_completions(bill, found)
    _check_once(bill, found)
    _check_cancellations(bill, found)
    _check_permits(bill)
    _check_limits(bill, found)
    _check_schedule(bill, found)
    _check_counters(bill, found)
    bill.groups = sum(entry.words[1] == "group" for entry in events["tried"])
    bill.check("no error but those that are documented", _texts(events["surprise"]))
    return bill


class _Found:
    """The ledger and the server, read once."""

    def __init__(self, events: dict[str, list[Entry]], stage: Stage) -> None:
        self.events = events
        self.failovers = stage.failovers
        self._is_replicated = bool(stage.replicas)
        self.outcomes: dict[str, TaskOutcome] = {}
        waiting: set[str] = set()
        self.in_reserve: set[str] = set()
        self.in_two_shards: set[str] = set()
        with connect(app.URL, profile="tasks") as client:
            for keys in internals_of(app.queue).shards.all:
                outcomes = {
                    name.decode(): TaskOutcome.read(outcome)
                    for name, outcome in _scan(client.hscan, keys.done)
                }
                tasks = {name.decode() for name, _ in _scan(client.hscan, keys.task)}
                known = self.outcomes.keys() | waiting
                self.in_two_shards |= known & (outcomes.keys() | tasks)
                self.outcomes |= outcomes
                waiting |= tasks
                self.in_reserve |= {
                    name.decode()
                    for scan, key in (
                        (client.zscan, keys.later),
                        (client.hscan, keys.parked),
                    )
                    for name, _ in _scan(scan, key)
                }
        self.results: dict[str, Any] = {
            name: msgspec.json.decode(outcome.result)
            for name, outcome in self.outcomes.items()
            if outcome.state == "done"
        }
        self.unfinished = waiting - self.outcomes.keys()
        self.accepted = {entry.words[0]: entry for entry in events["accepted"]}
        self.tried = {entry.words[0] for entry in events["tried"]} - {""}
        self._undoing = [
            (self._confirmed_before(began), ended) for began, ended in self.failovers
        ]

    def state(self, name: str) -> str:
        """Return how a task ended, `waiting`, or `lost`."""
        if name in self.outcomes:
            return self.outcomes[name].state
        return "waiting" if name in self.unfinished else "lost"

    def may_be_lost(self, sent: float, answered: float) -> bool:
        """Tell whether what was confirmed between then and then may be lost."""
        return not self._is_replicated and self.may_be_undone(sent, answered)

    def may_be_undone(self, sent: float, answered: float) -> bool:
        """Tell whether what no replica has confirmed between then and then may be."""
        return any(
            began <= answered and sent <= ended for began, ended in self._undoing
        )

    def _confirmed_before(self, failover: float) -> float:
        """Return from when on a failover may undo what waited for no replica.

        A task that was accepted is on the replica, and so is all that was written
        before it. There may be no replica for long, until an old primary is one.
        """
        lagged = failover - _LAG
        if not self._is_replicated:
            return lagged
        sent = (float(e.words[1]) for e in self.accepted.values() if e.at <= failover)
        return min(lagged, max(sent, default=0.0))


def _account(bill: Bill, found: _Found) -> None:
    lost = []
    for name, entry in found.accepted.items():
        state = found.state(name)
        sent = float(entry.words[1])
        if state == "lost" and found.may_be_lost(sent, entry.at):
            state = "lost as documented"
        bill.ends[state] += 1
        if state == "lost":
            lost.append(name)
    bill.check("nothing that was accepted is lost", lost)
    bill.check("a task is in one shard", found.in_two_shards)
    bill.check("what waits is due later or parked", found.unfinished - found.in_reserve)
    known = found.outcomes.keys() | found.unfinished
    ticks = {name for name in known if name.startswith("second@")}
    foreign = known - found.accepted.keys() - found.tried - ticks
    # Chains, groups and unique tasks have ids that their producer learns too late,
    # if it dies before the reply.
    doubts = _in_doubt(found)
    named = found.tried - found.accepted.keys()
    bill.notes["submissions in doubt"] = doubts.total() + len(named)
    if len(foreign) > sum(_MOST_TASKS.get(kind, 1) * n for kind, n in doubts.items()):
        bill.check(f"nothing is there that nobody submitted, but {doubts}", foreign)
    bill.notes["accepted, by tenths"] = _tenths(
        [entry.at for entry in found.accepted.values()]
    )
    bill.notes["ticks"] = len(ticks)
    reasons = Counter(
        outcome.reason or (outcome.error.type if outcome.error else "")
        for outcome in found.outcomes.values()
        if outcome.state in ("dead", "failed")
    )
    bill.notes["reasons of the dead"] = dict(reasons)


def _tenths(times: list[float]) -> str:
    """Tell how many fall into each tenth of the time: where nothing went on."""
    first, last = min(times, default=0), max(times, default=0)
    length = (last - first) / 10 or 1.0
    tenths = Counter(min(9, int((at - first) / length)) for at in times)
    return " ".join(str(tenths[one]) for one in range(10))


def _in_doubt(found: _Found) -> Counter[str]:
    """Count the submissions without a name that were not answered, by their kind."""
    unnamed = Counter(
        entry.words[1] for entry in found.events["tried"] if not entry.words[0]
    )
    return unnamed - Counter(entry.words[0] for entry in found.events["answered"])


def _check_completions(bill: Bill, found: _Found) -> None:
    """Look for tasks that were completed twice, or without having been run."""
    done = found.results
    counted = app.queue.counts().stats.get("done", 0)
    if counted != len(done):
        bill.broken.append(
            f"completed twice: {counted} completions of {len(done)} tasks"
        )
    bill.check(
        "everybody sees the same result",
        (
            entry.words[0]
            for entry in found.events["saw"]
            if done.get(entry.words[0]) != entry.words[1]
            and not found.may_be_undone(entry.at - _LATE, entry.at)
        ),
    )
    ended = {(entry.words[0], entry.words[2]) for entry in found.events["ended"]}
    bill.check(
        "what is done was run", (one for one in done.items() if one not in ended)
    )
    bill.notes["runs"] = len(found.events["began"])
    bill.notes["runs more than once"] = sum(
        times > 1
        for times in Counter(e.words[0] for e in found.events["began"]).values()
    )


def _check_once(bill: Bill, found: _Found) -> None:
    runs = Counter(
        entry.words[0]
        for entry in found.events["began"]
        if entry.words[1] == "delicate"
        and not found.may_be_lost(entry.at - _LATE, entry.at)
    )
    bill.check(
        "what must not be run twice is not",
        (name for name, times in runs.items() if times > 1),
    )
    new = Counter(
        entry.words[1] for entry in found.events["answered"] if entry.words[2] == "1"
    )
    bill.check(
        "a unique task is new once", (name for name, times in new.items() if times > 1)
    )


def _check_cancellations(bill: Bill, found: _Found) -> None:
    bill.check(
        "what was cancelled stays cancelled",
        (
            f"{entry.words[0]} is {found.state(entry.words[0])}"
            for entry in found.events["cancelled"]
            if found.state(entry.words[0]) != "cancelled"
            and not found.may_be_undone(entry.at - _LATE, entry.at)
        ),
    )
    asked = {entry.words[0] for entry in found.events["cancels"]}
    bill.check(
        "nothing is cancelled that nobody cancels",
        (name for name in found.tried - asked if found.state(name) == "cancelled"),
    )
    bill.check(
        "only what may expire expires",
        (
            name
            for name, outcome in found.outcomes.items()
            if outcome.state == "expired" and not name.startswith("brief-")
        ),
    )


def _check_permits(bill: Bill) -> None:
    with connect(app.URL, profile="tasks") as client:
        for keys in internals_of(app.queue).shards.all:
            permits: Any = client.hgetall(keys.permits)
            holders: Any = client.hkeys(keys.permit_holders)
            held = (one for one in permits.items() if one[1] != b"0")
            bill.check("no permit is held", held)
            bill.check("nobody holds a permit", holders)


def _check_limits(bill: Bill, found: _Found) -> None:
    most_of = {"limited": app.MOST_OF_CUSTOMER, "seated": app.MOST_AT_DESK}
    crowds = look_for_crowds(found.events, found.results, most_of)
    for name, crowding in crowds.items():
        bill.notes[f"{name}, at once"] = crowding
        promise = f"no more of {name} run at once than its limit allows"
        bill.check(promise, crowding.crowds)


def _check_schedule(bill: Bill, found: _Found) -> None:
    (state,) = app.queue.schedules()
    known = found.outcomes.keys() | found.unfinished
    ticks = sorted(
        datetime.fromisoformat(name.removeprefix("second@").removesuffix("Z"))
        for name in known
        if name.startswith("second@")
    )
    if len(ticks) != state.fired:
        fired = f"{state.fired} fired, {len(ticks)} tasks"
        bill.broken.append(f"a tick is fired once: {fired}")
    bill.notes["ticks passed over"] = state.passed
    # A failover may undo the last ticks, and they are fired again.
    seconds = (ticks[-1] - ticks[0]).total_seconds() + 1 if ticks else 0
    if len(ticks) + state.passed < seconds and not found.failovers:
        missing = f"{len(ticks)} fired, {state.passed} passed over in {seconds:.0f} s"
        bill.broken.append(f"every tick is fired or counted: {missing}")


def _check_counters(bill: Bill, found: _Found) -> None:
    batches = {entry.words[0]: int(entry.words[1]) for entry in found.events["flushed"]}
    flushed, pending = sum(batches.values()), _read_pending()
    counted, tried = len(found.events["counted"]), len(found.events["counts"])
    bill.notes["increments"] = f"{counted} made, {flushed} flushed, {pending} pending"
    if pending:
        bill.broken.append(f"counters reach their store: {pending} are left")
    # A failover may lose increments, or that a batch was taken: then its counts are
    # taken again, under another id.
    undone = sum(
        found.may_be_undone(entry.at - _LATE, entry.at)
        for entry in found.events["counted"]
    )
    repeated = sum(
        int(entry.words[1])
        for entry in found.events["flushed"]
        if found.may_be_undone(entry.at - _LATE, entry.at)
    )
    least, most = counted - undone, tried + repeated
    if not least <= flushed <= most:
        bill.broken.append(
            f"counters count once: {least} to {most} increments, {flushed} flushed"
        )


def _read_pending() -> int:
    # A job waits 50 ms for an answer, which on a busy machine may be too short.
    for _ in range(_MOST_TRIES):
        with suppress(RedisUnavailable):
            return app.counters.pending()
    return app.counters.pending()


def _texts(entries: Iterable[Entry]) -> list[str]:
    return [" ".join(entry.words) for entry in entries]


def _scan(scan: Callable[..., Any], key: str) -> Iterable[tuple[bytes, bytes]]:
    cursor: Any = 0
    while True:
        cursor, page = scan(key, cursor, count=1000)
        yield from dict(page).items()
        if not cursor:
            return
