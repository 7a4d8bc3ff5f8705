"""An exchange under way while tasks run; the test is Redis, the slot and time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.client.queue_schedules import QueueSchedules
from workstealing.client.shards import Shards
from workstealing.errors import NotReplicated, PoolBroken, RedisUnavailable
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call
from workstealing.queue.worker_calls import Departure, Exchanged, Rescued
from workstealing.tasks.attempt import Delivery, Report, Unroutable
from workstealing.tasks.context import ExecutionContext
from workstealing.testing import ManualClock, ScriptedChance
from workstealing.workers.batching import Batching
from workstealing.workers.identity import Phase, UntilEmpty, WorkerIdentity
from workstealing.workers.in_flight import InFlight
from workstealing.workers.lease import Lease
from workstealing.workers.loop import WorkerLoop

KEYS = QueueKeys("queue", "run")
SHARDS = Shards("queue", "run", 1, QueueSettings(), ManualClock())
IDENTITY = WorkerIdentity(
    SHARDS, KEYS, QueueSettings(), "w.0", "incarnation", {"abilities": []}
)
LOST = object()
"""The answer of a Redis that gave the tasks to others."""


class Redis:
    """A worker that drains *waiting* tasks, and a driver that says what it was asked.

    Tasks last a millisecond, unless *lasts* says otherwise.
    """

    def __init__(
        self,
        waiting: int,
        *,
        overlaps: bool = True,
        batch: int = 100,
        until_empty: UntilEmpty = True,
        seconds: float = 0.001,
    ) -> None:
        self.clock = ManualClock(100.0)
        self.in_flight = InFlight(Batching(batch, overlaps=overlaps), self.clock)
        self.in_flight.resize(1)
        self.in_flight.slot_is_idle()
        self.lease = Lease(15.0, self.clock)
        self.waiting = [f"t{number}" for number in range(waiting)]
        self.said: list[str] = []
        """`send`, `read`, `exchange`, `work` and names of scripts, in order."""
        self.asked: list[tuple[Any, ...]] = []
        """The arguments of all exchanges."""
        self.sent: list[Call[Any]] = []
        self.replies: dict[int, Any] = {}
        """What to answer to an exchange, by its place, instead of tasks."""
        self.done: list[str] = []
        """Reports that arrived."""
        self.ran: list[str] = []
        self.seconds = seconds
        self.during: dict[str, Callable[[], None]] = {}
        """What happens while a task runs, by its id."""
        self.check_descriptors: Callable[[], object] = lambda: None
        self.attempt: Any = None
        self.ending: Callable[[Delivery], Any] = lambda t: Report(t.id, "t", "done")
        driver: Any = self
        slots: Any = self
        self.loop = WorkerLoop(
            IDENTITY,
            driver,
            driver,
            self.in_flight,
            slots,
            self.lease,
            QueueSchedules("queue/run", KEYS, QueueSettings(), None, 0),
            idle=lambda: None,
            is_supervised=lambda: True,
            check_descriptors=lambda: self.check_descriptors(),
            until_empty=until_empty,
            rest=5.0,
            may_repeat=False,
            chance=ScriptedChance(*[0.5] * 100),
            clock=self.clock,
            sleep=lambda _: None,
        )

    # The driver.

    def send(self, call: Call[Any]) -> None:
        assert not self.sent, "one is under way at most"
        self.said.append("send")
        self.sent.append(call)
        self.asked.append(call.arguments)

    def call(self, call: Call[Any]) -> Any:
        if call.script.name != "exchange":
            assert not self.sent, "nobody speaks before the reply is read"
            self.said.append(call.script.name)
            usual = {
                "join": Rescued(0),
                "leave": Departure(0, 0),
                "find_capable": "",
            }
            return usual.get(call.script.name, 0)
        if self.sent:
            assert self.sent.pop() is call, "the reply that is on its way is read first"
            self.said.append("read")
        else:
            self.said.append("exchange")
            self.asked.append(call.arguments)
        answer = self.replies.pop(len(self.asked) - 1, None)
        if isinstance(answer, BaseException):
            raise answer
        self.done += reported(call.arguments)
        if answer is not None:
            return None if answer is LOST else answer
        want: Any = call.arguments[4]
        taken, self.waiting = self.waiting[:want], self.waiting[want:]
        return brought(*taken, unfinished=len(self.waiting) + len(taken))

    def run(self, flow: Any) -> int:
        assert not self.sent, "nobody speaks before the reply is read"
        if flow.__name__ not in ("settle", "known"):
            self.said.append(flow.__name__)
        flow.close()
        return 0

    # The slot.

    def all(self) -> tuple[Any, ...]:
        return (self,)

    def interrupt(self, attempt: Any) -> bool:
        raise AssertionError("only a supervisor interrupts")

    def wake(self, number: int) -> None:
        pass

    def stop_listening(self) -> None:
        pass

    def work(self, _: float = math.inf) -> None:
        self.said.append("work")
        in_flight, began_at = self.in_flight, self.clock.monotonic()
        in_flight.slot_is_busy()
        try:
            while (delivery := in_flight.begin()) is not None:
                self.ran.append(delivery.id)
                before = self.clock.monotonic()
                self.clock.advance(self.seconds)
                self.during.pop(delivery.id, lambda: None)()
                now = self.clock.monotonic()
                in_flight.finish(delivery, self.ending(delivery), now - before)
                if now - began_at > in_flight.turn_seconds:
                    break
        finally:
            in_flight.slot_is_idle()

    def rest(self, seconds: float) -> Any:
        self.said.append("rest")

    def beat(self, times: int = 1, seconds: float = 0.06) -> None:
        for _ in range(times):
            self.clock.advance(seconds)
            self.loop.heartbeat()


def brought(*ids: str, **facts: Any) -> Exchanged:
    known: dict[str, Any] = {
        "refused": (),
        "cancelled": (),
        "victims": (),
        "unfinished": len(ids),
        "is_overdue": False,
        "delayed": 0,
    }
    tasks = tuple(Delivery(task_id, "t", 1, b"{}") for task_id in ids)
    return Exchanged(tasks, **known | facts)


def reported(arguments: tuple[Any, ...]) -> list[str]:
    held = max(0, arguments[9])
    return list(arguments[10 + held :: 5])


def held(arguments: tuple[Any, ...]) -> list[str] | None:
    number = arguments[9]
    return None if number < 0 else list(arguments[11 : 10 + number])


def place_of_first_send(redis: Redis) -> int:
    """Return the place of the first exchange that is under way while tasks run."""
    talk = [word for word in redis.said if word in ("send", "exchange")]
    return talk.index("send")


def probed(**options: Any) -> int:
    """Return which exchange of such a worker is the first one to be under way."""
    probe = Redis(400, **options)
    probe.loop.run()
    return place_of_first_send(probe)


def test_a_batch_runs_while_the_next_exchange_is_under_way() -> None:
    redis = Redis(400)

    redis.loop.run()

    sends = [n for n, word in enumerate(redis.said) if word == "send"]
    assert len(sends) > 5
    assert all(redis.said[n + 1 : n + 3] == ["work", "read"] for n in sends)
    assert redis.ran == redis.done == [f"t{n}" for n in range(400)]
    assert not redis.in_flight.is_busy()


def test_two_batches_of_25_ms_are_all_that_a_thief_cannot_reach() -> None:
    redis = Redis(400)
    redis.loop.run()

    # Less than that, as time is learnt in fractions of what is exact.
    assert max(arguments[4] for arguments in redis.asked) in (24, 25)


def test_reports_go_out_as_soon_as_their_batch_has_run() -> None:
    redis = Redis(400)
    sent, kept_back = redis.send, list[set[str]]()

    def send(call: Call[Any]) -> None:
        kept_back.append({*redis.ran} - {*redis.done} - {*reported(call.arguments)})
        sent(call)

    redis.send = send  # type: ignore[method-assign]
    redis.loop.run()

    assert len(kept_back) > 5
    assert not any(kept_back)


@pytest.mark.parametrize(
    "options",
    [
        {"overlaps": False},
        {"batch": 1},
        {"seconds": 0.02},
        {"seconds": 0.2},
    ],
    ids=["no connection for it", "one at a time", "slow tasks", "long tasks"],
)
def test_it_takes_turns_with_redis(options: Any) -> None:
    redis = Redis(60, **options)

    redis.loop.run()

    assert "send" not in redis.said
    assert redis.done == [f"t{n}" for n in range(60)]


def test_nothing_is_sent_ahead_when_less_came_than_was_asked_for() -> None:
    """So one that is to run alone does: nothing comes with it, or behind it."""
    redis = Redis(400)
    first = probed()
    redis.replies[first] = brought("suspect")
    seen: list[list[str]] = []
    redis.during["suspect"] = lambda: seen.append(list(redis.said))

    redis.loop.run()

    assert not redis.sent
    assert seen[0][-2:] == ["read", "work"]


def test_at_the_end_it_takes_turns_and_ends_with_everything_reported() -> None:
    redis = Redis(90)

    redis.loop.run()

    assert sorted(redis.done) == sorted(f"t{n}" for n in range(90))
    assert redis.said[-2:] == ["exchange", "leave"]
    assert redis.loop.is_empty


def test_a_lost_reply_has_reports_repeated_and_all_named_that_is_held() -> None:
    first = probed() + 1
    redis = Redis(400)
    redis.replies[first] = RedisUnavailable("the reply was lost")

    redis.loop.run()

    lost, after = redis.asked[first : first + 2]
    assert reported(lost)
    assert reported(after)[: len(reported(lost))] == reported(lost)
    # The batch that ran meanwhile is reported too, so that nothing else is held.
    assert held(after) == []
    assert len(set(reported(after))) > len(reported(lost))
    assert redis.ran == redis.done
    assert redis.loop.stats.failures == 1


def test_a_lost_reply_that_a_heartbeat_reads_has_the_batch_in_hand_named() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = RedisUnavailable("the reply was lost")
    where = task_in_hand(first)
    named: list[str] = []

    def long_task() -> None:
        with pytest.raises(RedisUnavailable):
            redis.beat()
        redis.beat(2)
        named.extend(held(redis.asked[first + 1]) or [])

    redis.during[where] = long_task
    redis.loop.run()

    assert where in named
    assert redis.done == redis.ran


def test_a_lost_lease_drops_the_batch_in_hand_with_its_reports() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = LOST

    redis.loop.run()

    joins = [n for n, word in enumerate(redis.said) if word == "join"]
    assert len(joins) == 2
    following = redis.asked[first + 1]
    assert (reported(following), held(following)) == ([], None)
    assert redis.loop.stats.lost_leases == 1


def test_a_lost_lease_that_a_heartbeat_learns_of_reaches_the_running_task() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = LOST
    context = ExecutionContext("a", "add")
    redis.attempt = type("A", (), {"context": context})()
    where = task_in_hand(first)
    redis.during[where] = redis.beat

    redis.loop.run()

    assert context.lease_lost
    assert redis.said.count("join") == 2


def task_in_hand(exchange: int) -> str:
    """Return the first task that runs while an exchange is under way."""
    probe = Redis(400)
    found: list[str] = []
    original = probe.work

    def work(_: float = math.inf) -> None:
        if probe.sent and len(probe.asked) == exchange + 1:
            found.append(probe.in_flight._waiting[0].id)
        original()

    probe.work = work  # type: ignore[method-assign]
    probe.loop.run()
    return found[0]


def test_a_long_task_has_the_reply_read_and_all_behind_it_put_back() -> None:
    first = probed()
    redis = Redis(400)
    released: list[str] = []

    def long_task() -> None:
        redis.beat(3)
        released.extend(redis.said[redis.said.index("send") :])
        assert not redis.in_flight._waiting

    redis.during[task_in_hand(first)] = long_task
    redis.loop.run()

    assert released == ["send", "work", "read", "exchange", "release"]


def test_a_heartbeat_leaves_a_reply_alone_that_is_not_late() -> None:
    first = probed()
    redis = Redis(400)
    said: list[str] = []

    def short_task() -> None:
        redis.beat(seconds=0.01)
        said.extend(redis.said[-2:])

    redis.during[task_in_hand(first)] = short_task
    redis.loop.run()

    assert said == ["send", "work"]


def test_a_lease_is_renewed_by_the_time_of_the_exchange_not_of_its_reading() -> None:
    redis = Redis(1_000)
    silences: list[float] = []
    has_held = False

    def hold_the_interpreter() -> None:
        nonlocal has_held
        if has_held:
            silences.append(redis.lease.silence)
        elif redis.sent and redis.sent[0].arguments[3]:
            # The exchange under way renews the lease, and nobody reads its reply.
            has_held = True
            redis.clock.advance(9.0)

    redis.during = {f"t{n}": hold_the_interpreter for n in range(1_000)}
    redis.loop.run()

    assert silences[0] > 9.0


def test_a_stop_reads_the_reply_and_hands_back_what_it_brought() -> None:
    first = probed()
    redis = Redis(400)
    where = task_in_hand(first)

    def stop() -> None:
        redis.loop.enter(Phase.STOPPING)

    redis.during[where] = stop
    redis.loop.run()

    at = redis.said.index("send")
    assert redis.said[at : at + 5] == ["send", "work", "read", "release", "leave"]
    assert redis.ran[-1] == where
    assert redis.done[-1] == where
    assert not redis.in_flight.is_busy()


def test_one_that_stops_sends_nothing_ahead_and_robs_nobody() -> None:
    first = probed()
    redis = Redis(400)
    answered = redis.call

    def stop(call: Call[Any]) -> Any:
        answer = answered(call)
        if len(redis.asked) == first:
            redis.loop.enter(Phase.STOPPING)
        return answer

    redis.call = stop  # type: ignore[method-assign]
    redis.loop.run()

    assert "send" not in redis.said


def test_a_reply_that_comes_with_a_stop_makes_nobody_a_thief() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = brought(victims=(("rich", 9),))

    def stop() -> None:
        redis.loop.enter(Phase.STOPPING)

    redis.during[task_in_hand(first)] = stop
    redis.loop.run()

    assert "steal" not in redis.said


def test_a_stop_that_a_heartbeat_notices_first_hands_back_all_the_same() -> None:
    first = probed()
    redis = Redis(400)

    def stop() -> None:
        redis.loop.enter(Phase.QUIET)
        redis.beat(seconds=0.01)
        redis.loop.enter(Phase.STOPPING)

    redis.during[task_in_hand(first)] = stop
    redis.loop.run()

    at = redis.said.index("send")
    assert redis.said[at : at + 5] == ["send", "work", "read", "release", "leave"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_who_is_interrupted_leaves_with_the_reply_read_and_reports_told(
    error: type[BaseException],
) -> None:
    first = probed()
    redis = Redis(400)
    where = task_in_hand(first + 1)

    def interrupted() -> None:
        raise error

    redis.during[where] = interrupted
    with pytest.raises(error):
        redis.loop.run()
    redis.loop.leave()

    assert redis.said[-4:] == ["read", "exchange", "release", "leave"]
    assert redis.done == redis.ran[:-1]


def test_a_process_that_ends_reads_the_reply_before_it_leaves() -> None:
    first = probed()
    redis = Redis(400)
    where = task_in_hand(first)

    def ends() -> None:
        redis.loop.abandon(None, None)
        raise SystemExit

    redis.during[where] = ends
    with pytest.raises(SystemExit):
        redis.loop.run()

    assert redis.said[-4:] == ["read", "exchange", "release", "leave"]


def test_when_an_exchange_cannot_be_sent_its_reports_are_kept() -> None:
    first = probed() + 1
    redis = Redis(400)
    sent = redis.send

    def send(call: Call[Any]) -> None:
        sent(call)
        if len(redis.asked) == first + 1:
            redis.sent.clear()
            raise RedisUnavailable("the connection was cut")

    redis.send = send  # type: ignore[method-assign]
    redis.loop.run()

    lost, after = redis.asked[first : first + 2]
    assert reported(after) == reported(lost) != []
    # What it brought is still to be run.
    assert held(after) not in (None, [])
    assert redis.done == redis.ran == [f"t{n}" for n in range(400)]


def test_without_replicas_it_takes_nothing_more_and_reports_again() -> None:
    first = probed() + 1
    redis = Redis(400)
    missing = NotReplicated((), 0, 1)
    missing.answer = brought("extra")
    redis.replies[first] = missing

    redis.loop.run()

    refused, after = redis.asked[first : first + 2]
    assert after[4] == 0
    assert set(reported(refused)) < set(reported(after))
    assert "extra" in redis.done


def test_a_cancellation_that_the_reply_brings_is_heeded() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = brought("x", "y", cancelled=("y",))
    cancelled: list[bool] = []
    redis.during["x"] = lambda: cancelled.append("y" in redis.in_flight.cancelled)

    redis.loop.run()

    assert cancelled == [True]


def test_a_task_it_does_not_know_is_routed_after_the_reply_was_read() -> None:
    redis = Redis(100)
    redis.ending = lambda task: (
        Unroutable(task, "x@2") if task.id == "t60" else Report(task.id, "t", "done")
    )

    redis.loop.run()

    assert "find_capable" in redis.said


def test_upkeep_that_a_reply_asks_for_is_done_when_nothing_is_under_way() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = brought(*(f"x{n}" for n in range(25)), is_overdue=True)

    redis.loop.run()

    assert redis.said.count("upkeep") == 1


def test_upkeep_that_a_late_reply_asks_for_is_done_by_the_heartbeat() -> None:
    first = probed()
    redis = Redis(400)
    redis.replies[first] = brought("x", is_overdue=True)
    done: list[bool] = []

    def long_task() -> None:
        redis.beat()
        done.append("upkeep" in redis.said)

    redis.during[task_in_hand(first)] = long_task
    redis.loop.run()

    assert done == [True]
    assert redis.said.count("upkeep") == 1


def test_a_pause_of_the_queue_ends_the_overlap() -> None:
    first = probed()
    redis = Redis(400, until_empty=False)
    redis.replies[first] = brought(unfinished=300)
    redis.replies[first + 1] = brought(unfinished=300)

    def over(seconds: float) -> None:
        redis.loop.enter(Phase.ENDING)

    redis.rest = over  # type: ignore[method-assign]
    redis.loop.run()

    assert redis.said.count("send") == 1
    assert redis.ran == redis.done


def test_nothing_is_read_on_a_connection_whose_descriptor_a_task_has_closed() -> None:
    first = probed()
    redis = Redis(400)

    def raise_lost() -> None:
        raise PoolBroken("a task has closed file descriptors")

    def close_all() -> None:
        redis.check_descriptors = raise_lost

    redis.during[task_in_hand(first)] = close_all
    with pytest.raises(PoolBroken, match="closed file descriptors"):
        redis.loop.run()

    assert redis.said[-1] == "work"
