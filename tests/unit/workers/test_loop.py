"""The loop of a worker, played by hand: here the test is Redis, the slots and time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from workstealing._logs import flush_logs
from workstealing.client.queue_schedules import QueueSchedules
from workstealing.client.shards import Shards
from workstealing.errors import (
    NotReplicated,
    PoolBroken,
    RedisReadOnly,
    RedisUnavailable,
    ServerTooOld,
)
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Call, RedisCommand
from workstealing.queue.worker_calls import (
    Departure,
    Exchanged,
    Rescued,
    choose_victim,
)
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
    SHARDS, KEYS, QueueSettings(), "w.0", "incarnation", {"abilities": ["add@1"]}
)


# Where an exchange says how many tasks it asks for.
_WANT = 4


def task(task_id: str) -> Delivery:
    return Delivery(task_id, "t", 1, b"{}")


def exchanged(*ids: str, **facts: Any) -> Exchanged:
    known: dict[str, Any] = {
        "refused": (),
        "cancelled": (),
        "victims": (),
        "unfinished": len(ids),
        "is_overdue": False,
        "delayed": 0,
    }
    return Exchanged(tuple(map(task, ids)), **known | facts)


class Scene:
    """A worker whose Redis answers as written down, call by call.

    An answer to `exchange` is what it brings, None for a lost lease, or an error to
    raise. When nothing is written down any more, the worker is told to stop.
    """

    def __init__(
        self,
        *exchanges: Exchanged | BaseException | None,
        until_empty: UntilEmpty = False,
        answers: dict[str, list[Any]] | None = None,
        identity: WorkerIdentity = IDENTITY,
        jitter: float = 0.5,
        release: int = 0,
    ) -> None:
        self.clock = ManualClock(100.0)
        self.in_flight = InFlight(Batching(), self.clock)
        self.in_flight.resize(1)
        self.in_flight.slot_is_idle()
        self.lease = Lease(15.0, self.clock)
        self.is_supervised = True
        self.exchanges = list(exchanges)
        self.answers = answers or {}
        self.calls: list[str] = []
        self.arguments: dict[str, list[tuple[Any, ...]]] = {}
        self.rests = 0
        self.rested: list[float] = []
        self.worked: list[float] = []
        self.waits_for: Any = None
        self.slept: list[float] = []
        self.attempt: Any = None
        self.ending: Callable[[Delivery], Any] = lambda t: Report(t.id, "t", "done")
        driver: Any = self
        self.loop = WorkerLoop(
            identity,
            driver,
            driver,
            self.in_flight,
            self,
            self.lease,
            QueueSchedules("queue/run", KEYS, QueueSettings(), None, release),
            idle=lambda: None,
            is_supervised=lambda: self.is_supervised,
            until_empty=until_empty,
            rest=5.0,
            chance=ScriptedChance(*[jitter] * 100),
            clock=self.clock,
            sleep=self.slept.append,
        )

    # The driver.

    def call(self, call: Call[Any]) -> Any:
        name = call.script.name
        self.calls.append(name)
        self.arguments.setdefault(name, []).append(call.arguments)
        if name == "exchange":
            return self._exchange()
        answers = self.answers.get(name)
        if answers:
            answer = answers.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            return answer
        usual = {"join": Rescued(0), "leave": Departure(0, 0), "steal": 0, "unpark": 0}
        return usual.get(name, True)

    def run(self, flow: Any) -> Any:
        if flow.__name__ not in ("settle", "known"):
            self.calls.append(flow.__name__)
        if flow.__name__ == "renew":
            next(flow)
        flow.close()
        answer = (self.answers.get(flow.__name__) or [0]).pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _exchange(self) -> Exchanged | None:
        if not self.exchanges:
            self.loop.enter(Phase.ENDING)
            return exchanged()
        answer = self.exchanges.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    # The slots.

    def all(self) -> tuple[Any, ...]:
        return (self,)

    def interrupt(self, attempt: Any) -> bool:
        raise AssertionError("only a supervisor interrupts")

    def wake(self, number: int) -> None:
        pass

    def stop_listening(self) -> None:
        pass

    def work(self, seconds: float = math.inf) -> None:
        self.worked.append(seconds)
        self.in_flight.slot_is_busy()
        while (delivery := self.in_flight.begin()) is not None:
            self.in_flight.finish(delivery, self.ending(delivery), 0.01)
        self.in_flight.slot_is_idle()

    def rest(self, seconds: float) -> Any:
        self.rests += 1
        self.rested.append(seconds)
        return self.waits_for

    def has_moved(self) -> None:
        self.calls.append("moved")


def reported(arguments: tuple[Any, ...]) -> list[str]:
    """Return the ids that an exchange reports on."""
    held = max(0, arguments[9])
    return list(arguments[10 + held :: 5])


def test_it_joins_unparks_exchanges_and_leaves() -> None:
    scene = Scene(until_empty=True)

    scene.loop.run()

    # The last exchange belongs to leaving.
    assert scene.calls == ["join", "unpark", "exchange", "exchange", "leave"]


def test_what_was_run_is_reported_with_the_next_exchange() -> None:
    scene = Scene(exchanged("a", "b"), exchanged())

    scene.loop.run()

    first, second, *_ = scene.arguments["exchange"]
    assert reported(first) == []
    assert reported(second) == ["a", "b"]
    assert not scene.in_flight.is_busy()


def test_with_nothing_to_do_it_rests() -> None:
    scene = Scene(exchanged(), exchanged(), exchanged())

    scene.loop.run()

    assert scene.rests >= 2


def test_it_rests_longer_while_nothing_happens_and_renews_its_lease_after_each() -> (
    None
):
    scene = Scene(exchanged(), exchanged(), exchanged(), exchanged("a"), exchanged())

    scene.loop.run()

    assert scene.rested[:4] == [1.0, 5.0, 5.0, 1.0]
    assert [arguments[3] for arguments in scene.arguments["exchange"]][2:4] == [1, 1]


def test_it_does_not_rest_long_while_something_is_due_later() -> None:
    scene = Scene(exchanged(next_in_ms=60_000), exchanged(next_in_ms=300), exchanged())

    scene.loop.run()

    assert scene.rested[:2] == [1.0, 0.3]


def with_a_free_slot(*exchanges: Exchanged, **facts: Any) -> Scene:
    """Return a worker of which one slot runs a long task, and another is free."""
    scene = Scene(*exchanges, **facts)
    scene.in_flight.resize(2)
    scene.in_flight.take([task("long")], ())
    assert scene.in_flight.begin()
    scene.work = scene.worked.append  # type: ignore[method-assign]
    return scene


def test_with_a_free_slot_it_waits_no_longer_than_until_something_is_due() -> None:
    scene = with_a_free_slot(exchanged(next_in_ms=300), exchanged())

    scene.loop.run()

    assert scene.worked[:2] == [0.3, math.inf]


def test_a_tick_is_fired_before_it_waits_and_then_it_looks_for_its_task() -> None:
    due = exchanged(due_schedules=1)
    scene = with_a_free_slot(due, exchanged(), answers={"fire_due": [1]})

    scene.loop.run()

    assert scene.calls[2:5] == ["exchange", "fire_due", "exchange"]
    assert scene.worked[:2] == [0.0, math.inf]


def test_a_tick_that_it_cannot_fire_does_not_keep_it_from_waiting() -> None:
    scene = with_a_free_slot(exchanged(due_schedules=1), answers={"fire_due": [0]})

    scene.loop.run()

    assert scene.worked[0] == math.inf


def test_a_task_that_came_is_begun_before_a_tick_is_fired_but_not_waited_for() -> None:
    due = exchanged("a", due_schedules=1)
    scene = with_a_free_slot(due, exchanged(), answers={"fire_due": [1]})

    scene.loop.run()

    assert scene.calls[2:5] == ["exchange", "exchange", "fire_due"]
    assert scene.worked[0] == 0.0


def test_one_that_takes_no_more_does_not_rest_long_for_it_may_be_fed() -> None:
    scene = Scene(exchanged(), exchanged(), exchanged())
    scene.loop.enter(Phase.QUIET)

    scene.loop.run()

    assert set(scene.rested) == {1.0}


def test_one_that_takes_no_tasks_leaves_wake_ups_to_others() -> None:
    scene = Scene(exchanged(), exchanged())
    scene.waits_for = RedisCommand(("BLPOP", "bell", 1), bool)
    scene.loop.enter(Phase.QUIET)

    scene.loop.run()

    assert set(scene.slept) == {0.5}


def test_it_ends_when_nothing_can_run_now_though_something_is_due_later() -> None:
    last = exchanged()
    scene = Scene(exchanged(unfinished=3, delayed=3), last, until_empty=True)

    scene.loop.run()

    assert (scene.rests, scene.loop.phase) == (0, Phase.WORKING)


def test_asked_for_all_it_waits_for_what_is_due_later() -> None:
    later = exchanged(unfinished=3, delayed=3)
    scene = Scene(later, later, exchanged(), exchanged(), until_empty="all")

    scene.loop.run()

    assert (scene.rests, scene.loop.phase) == (2, Phase.WORKING)


def test_with_an_empty_deque_it_robs_the_richer_of_two_and_comes_back_at_once() -> None:
    rich = exchanged(victims=(("w.0", 9), ("x.0", 2), ("y.0", 5)))
    scene = Scene(rich, exchanged("a"), answers={"steal": [3]})

    scene.loop.run()

    (arguments,) = scene.arguments["steal"]
    assert arguments[:2] == ("y.0", "w.0")
    assert scene.calls[2:5] == ["exchange", "steal", "exchange"]
    assert scene.loop.stats.stolen == 3


def test_a_thief_that_came_too_late_tries_again_soon_and_then_less_often() -> None:
    nothing = exchanged(victims=(("rich", 3),))
    scene = Scene(nothing, nothing, nothing)

    scene.loop.run()

    assert scene.rested[:3] == pytest.approx([0.02, 0.04, 0.08])


def test_a_stop_that_comes_while_it_exchanges_is_not_slept_over() -> None:
    scene = Scene(exchanged())
    answered = scene._exchange

    def stopped() -> Exchanged | None:
        scene.loop.enter(Phase.STOPPING)
        return answered()

    scene._exchange = stopped  # type: ignore[method-assign]
    scene.loop.run()

    assert scene.rests == 0


def test_a_thief_robs_nobody_but_others_who_have_something() -> None:
    assert choose_victim([("w.0", 9), ("x.0", 0)], "w.0") is None
    assert choose_victim([("w.0", 9), ("x.0", 1)], "w.0") == "x.0"


def test_after_a_lost_reply_reports_are_repeated_and_what_is_held_is_named() -> None:
    lost = RedisUnavailable("the reply was lost")
    scene = Scene(exchanged("a"), lost, exchanged())

    scene.loop.run()

    _, second, third, *_ = scene.arguments["exchange"]
    assert reported(second) == reported(third) == ["a"]
    # The report is settled first, so that nothing else is held.
    assert third[9] == 1
    assert scene.loop.stats.failures == 1
    assert scene.slept == pytest.approx([0.075])


def test_pauses_grow_while_redis_is_away_and_begin_anew_when_it_answers() -> None:
    away = RedisUnavailable("nobody is there")
    scene = Scene(away, away, away, exchanged(), away)

    scene.loop.run()

    assert scene.slept == pytest.approx([0.075, 0.15, 0.3, 0.075])


def test_who_reads_that_redis_is_away_reads_that_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = RedisUnavailable("nobody is there")
    scene = Scene(away, away, exchanged(), exchanged())
    # What tests before this one have logged.
    assert flush_logs()
    caplog.clear()

    with caplog.at_level("INFO"):
        scene.loop.run()

    assert flush_logs()
    assert [line.split(",")[0] for line in caplog.messages if "Redis" in line] == [
        "worker w.0 cannot reach Redis",
        "worker w.0 reaches Redis again",
    ]


def test_however_long_redis_is_away_a_worker_is_back_within_five_seconds() -> None:
    away = [RedisUnavailable("nobody is there")] * 12
    scene = Scene(*away, exchanged(), jitter=0.999)

    scene.loop.run()

    assert len(scene.slept) == 12
    # What is left of them is for the reply.
    assert 3 < max(scene.slept) < 5


def test_a_join_that_failed_is_repeated_whole() -> None:
    scene = Scene(until_empty=True, answers={"unpark": [RedisUnavailable("away")]})

    scene.loop.run()

    assert scene.calls[:5] == ["join", "unpark", "join", "unpark", "exchange"]


def test_a_server_that_is_too_old_ends_the_worker() -> None:
    scene = Scene(ServerTooOld("Redis 5"))

    with pytest.raises(ServerTooOld):
        scene.loop.run()


def test_after_a_lost_lease_it_drops_what_it_holds_and_joins_again() -> None:
    context = ExecutionContext("a", "add")
    scene = Scene(exchanged("a"), None, exchanged())
    scene.attempt = type("A", (), {"context": context})()

    scene.loop.run()

    assert context.lease_lost
    assert scene.calls[:7] == [
        "join",
        "unpark",
        "exchange",
        "exchange",
        "join",
        "unpark",
        "exchange",
    ]
    assert scene.loop.stats.lost_leases == 1


def test_after_a_lost_lease_nothing_waits_that_others_may_run() -> None:
    scene = Scene(exchanged("a"), None, exchanged())
    scene.work = lambda _: None  # type: ignore[method-assign]
    is_busy: list[bool] = []
    answered = scene._exchange

    def looked_at() -> Exchanged | None:
        is_busy.append(scene.in_flight.is_busy())
        return answered()

    scene._exchange = looked_at  # type: ignore[method-assign]
    scene.loop.run()

    assert is_busy[:3] == [False, True, False]


@pytest.mark.parametrize("is_last", [False, True], ids=["before", "in one"])
def test_a_lease_lost_while_replicas_lack_a_report_lets_it_take_tasks_again(
    is_last: bool,
) -> None:
    missing = NotReplicated((), 0, 1)
    missing.answer = None if is_last else exchanged()
    lost = () if is_last else (None,)
    scene = Scene(exchanged("a"), missing, *lost, exchanged("b"), exchanged())

    scene.loop.run()

    assert scene.loop.stats.lost_leases == 1
    joined_again = scene.arguments["exchange"][2 + len(lost)]
    assert reported(joined_again) == []
    assert joined_again[_WANT] > 0


def test_an_exchange_that_is_not_to_renew_the_lease_is_no_sign_of_life() -> None:
    scene = Scene(exchanged("a"), exchanged("b"), exchanged("c"))
    silences: list[float] = []
    answered = scene._exchange

    def later() -> Exchanged | None:
        silences.append(scene.lease.silence)
        scene.clock.advance(0.1)
        return answered()

    scene._exchange = later  # type: ignore[method-assign]
    scene.loop.run()

    assert silences[:3] == pytest.approx([0.0, 0.0, 0.1])


@pytest.mark.parametrize(
    "answer", [None, RedisReadOnly("it is a replica"), RedisUnavailable("away")]
)
def test_an_answer_that_renews_nothing_is_no_sign_of_life(
    answer: BaseException | None,
) -> None:
    scene = Scene(exchanged("a"), answer, answer, answer)
    silences: list[float] = []
    answered = scene._exchange

    def later() -> Exchanged | None:
        silences.append(scene.lease.silence)
        scene.clock.advance(4.0)
        return answered()

    scene._exchange = later  # type: ignore[method-assign]
    scene.loop.run()

    # The first one renews; then it is 4 s more each time, until one renews again.
    assert silences[:5] == pytest.approx([0.0, 0.0, 4.0, 8.0, 12.0])


def test_a_heartbeat_that_renews_nothing_is_no_sign_of_life() -> None:
    stuck = Stuck()
    scene = stuck.scene
    silences: list[float] = []

    def refused(_: float) -> None:
        first = scene.in_flight.begin()
        assert first is not None
        for _ in range(3):
            scene.clock.advance(2.0)
            scene.exchanges.append(RedisReadOnly("it is a replica"))
            with pytest.raises(RedisReadOnly):
                scene.loop.heartbeat()
            silences.append(scene.lease.silence)
        scene.in_flight.finish(first, Report("running", "t", "done"), 1.0)

    scene.work = refused  # type: ignore[method-assign]
    scene.loop.run()

    assert silences == pytest.approx([2.0, 4.0, 6.0])


def test_a_cancellation_reaches_the_task_that_runs() -> None:
    context = ExecutionContext("a", "add")
    scene = Scene(exchanged(cancelled=("b",)), exchanged(cancelled=("a",)))
    scene.attempt = type("A", (), {"context": context, "task": task("a")})()

    scene.loop.run()

    assert context.cancelled


def test_reports_that_come_too_late_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(exchanged("a"), exchanged(refused=("a",)))

    scene.loop.run()

    assert scene.loop.stats.refused == 1
    assert flush_logs(10)
    assert "reported too late" in caplog.text


def test_a_task_it_does_not_know_goes_to_a_worker_that_does() -> None:
    scene = Scene(exchanged("a"), answers={"find_capable": ["new.0"]})
    scene.ending = lambda delivery: Unroutable(delivery, "x@2")

    scene.loop.run()

    assert "route" in scene.calls
    assert "park" not in scene.calls


@pytest.mark.parametrize(
    "answers", [{"find_capable": [""]}, {"find_capable": ["new.0"], "route": [False]}]
)
def test_a_task_that_no_live_worker_knows_is_parked(answers: Any) -> None:
    scene = Scene(exchanged("a"), answers=answers)
    scene.ending = lambda delivery: Unroutable(delivery, "x@2")

    scene.loop.run()

    assert "park" in scene.calls
    assert not scene.in_flight.is_busy()


def test_it_does_upkeep_when_redis_says_that_it_is_overdue() -> None:
    scene = Scene(exchanged(is_overdue=True), exchanged())

    scene.loop.run()

    assert scene.calls.count("upkeep") == 1


def test_it_says_once_a_minute_that_its_release_is_at_work() -> None:
    scene = Scene(exchanged(), exchanged(), exchanged(), exchanged(), release=7)
    answered = scene._exchange

    def later() -> Exchanged | None:
        scene.clock.advance(25.0)
        return answered()

    scene._exchange = later  # type: ignore[method-assign]
    scene.loop.run()

    calls = [call for call in scene.calls if call in ("exchange", "renew")]
    assert calls[:6] == ["exchange", "renew", *["exchange"] * 3, "renew"]
    assert calls.count("renew") == 2


def test_a_release_that_cannot_be_renewed_keeps_nothing_from_being_done() -> None:
    away = RedisUnavailable("the node of the first shard")
    overdue = exchanged(is_overdue=True)
    scene = Scene(overdue, release=7, answers={"renew": [away]})

    scene.loop.run()

    assert scene.calls[3:6] == ["exchange", "renew", "upkeep"]
    assert scene.loop.stats.failures == 0


def test_what_has_run_is_reported_before_it_does_upkeep() -> None:
    scene = Scene(exchanged("a", is_overdue=True), exchanged())
    scene.loop.run()
    assert scene.calls[2:5] == ["exchange", "exchange", "upkeep"]
    assert reported(scene.arguments["exchange"][1]) == ["a"]


def test_one_that_stops_takes_no_more_hands_back_and_lets_what_runs_end() -> None:
    scene = Scene()
    scene.in_flight.take([task("running"), task("waiting")], ())
    running = scene.in_flight.begin()
    assert running is not None
    scene.loop.enter(Phase.STOPPING)

    def work(_: float = math.inf) -> None:
        scene.in_flight.finish(running, Report("running", "t", "done"), 1.0)

    scene.work = work  # type: ignore[method-assign]
    scene.exchanges = [exchanged(), exchanged()]
    scene.loop.run()

    assert scene.calls[2:4] == ["release", "leave"]
    assert all(arguments[4] == 0 for arguments in scene.arguments["exchange"])
    assert [reported(a) for a in scene.arguments["exchange"]] == [[], ["running"], []]
    assert scene.calls[-1] == "leave"


def test_one_that_ends_hands_back_what_runs() -> None:
    scene = Scene()
    scene.loop.enter(Phase.ENDING)

    scene.loop.run()
    assert scene.calls == []

    scene = Scene()
    scene.loop.run()
    assert scene.calls[-2:] == ["exchange", "leave"]


def test_when_it_cannot_hand_back_it_ends_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(answers={"leave": [RedisUnavailable("away")]})

    scene.loop.run()

    assert flush_logs(10)
    assert "could not hand back its tasks" in caplog.text


def test_a_worker_whose_supervisor_does_not_answer_ends() -> None:
    scene = Scene()
    scene.is_supervised = False

    with pytest.raises(PoolBroken, match=r"supervisor of worker .* does not answer"):
        scene.loop.run()

    assert "exchange" not in scene.calls


class Stuck:
    """A worker whose own thread runs a task that began a while ago."""

    def __init__(self, *ids: str) -> None:
        self.scene = scene = Scene()
        # As the loop would have, before its thread began to run the task.
        scene.exchanges = [exchanged("running", *ids)]
        scene.work = self.run_long_task  # type: ignore[method-assign]
        self.first: Delivery | None = None

    def run_long_task(self, _: float) -> None:
        scene = self.scene
        scene.in_flight.slot_is_busy()
        self.first = scene.in_flight.begin()
        for _ in range(2):
            scene.clock.advance(0.06)
            scene.exchanges.append(exchanged())
            scene.loop.heartbeat()
        self.calls = list(scene.calls)
        assert self.first is not None
        scene.in_flight.finish(self.first, Report("running", "t", "done"), 1.0)
        scene.in_flight.slot_is_idle()


def test_what_waits_behind_a_long_task_is_put_back_where_thieves_reach_it() -> None:
    stuck = Stuck("waiting")

    stuck.scene.loop.run()

    assert stuck.calls[-2:] == ["exchange", "release"]
    assert stuck.scene.arguments["release"] == [("w.0", "waiting", "t")]


def test_the_lease_is_renewed_while_a_long_task_runs() -> None:
    stuck = Stuck()
    stuck.scene.clock.advance(5.0)

    stuck.scene.loop.run()

    assert stuck.calls.count("exchange") == 1
    stuck = Stuck()
    long_silence = stuck.run_long_task

    def silent(_: float) -> None:
        stuck.scene.clock.advance(2.0)
        long_silence(_)

    stuck.scene.work = silent  # type: ignore[method-assign]
    stuck.scene.loop.run()

    assert stuck.calls.count("exchange") == 2
    assert stuck.scene.lease.silence < 1.0


def test_ticks_that_are_due_are_fired_and_looked_at_again_without_a_rest() -> None:
    scene = Scene(exchanged(due_schedules=1))
    scene.run = _fire_one(scene)  # type: ignore[method-assign]

    scene.loop.run()

    assert scene.calls[2:5] == ["exchange", "fire_due", "exchange"]


def _fire_one(scene: Scene) -> Callable[[Any], int]:
    def run(flow: Any) -> int:
        flow.close()
        if flow.__name__ != "fire_due":
            return 0
        scene.calls.append(flow.__name__)
        return 1

    return run


def identity_of_two_shards() -> WorkerIdentity:
    shards = Shards("queue", "run", 2, QueueSettings(), ManualClock())
    description: dict[str, Any] = {"abilities": ["add@1"]}
    return WorkerIdentity(
        shards, shards.all[0], QueueSettings(), "w.0", "incarnation", description
    )


@pytest.mark.parametrize("has_joined", [True, False], ids=["joined", "not-joined"])
def test_who_leaves_a_shard_that_is_away_reports_to_others_where_it_has_tasks(
    has_joined: bool,
) -> None:
    identity, begun = identity_of_two_shards(), list[Delivery | None]()
    first, second = identity.shards.all
    # It begins a task, and goes to the other shard while that runs.
    scene = Scene(
        exchanged("a"),
        exchanged(),
        exchanged(),
        answers={"look": [None, 1]},
        identity=identity,
    )

    def work(_: float) -> None:
        scene.in_flight.slot_is_busy()
        begun.append(scene.in_flight.begin())

    answered, parting = scene.call, list[tuple[str, int]]()

    def call(call: Call[Any]) -> Any:
        if call.script.name == "join" and first.bell not in call.keys:
            if not has_joined:
                scene.loop.enter(Phase.ENDING)
                raise RedisUnavailable("its node is away")
        elif scene.loop.phase is Phase.ENDING:
            shard = 0 if first.bell in call.keys else 1
            parting.append((call.script.name, shard))
            if shard == 1:
                raise RedisUnavailable("its node is away")
            return exchanged() if call.script.name == "exchange" else Departure(0, 0)
        return answered(call)

    scene.work, scene.call = work, call  # type: ignore[method-assign, assignment]
    scene.loop.run()

    assert begun[0] == task("a")
    assert identity.keys == second
    there = [("exchange", 1)] if has_joined else []
    assert parting == [*there, ("exchange", 0), ("leave", 0)]
