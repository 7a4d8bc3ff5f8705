"""Schedules as users meet them: declared, fired, listed, paused, changed, removed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from workstealing import (
    AccessPolicy,
    AsyncTaskQueue,
    AsyncWorkStealer,
    ClientContext,
    Limit,
    TaskQueue,
    Unique,
    Worker,
    WorkStealer,
)
from workstealing._logs import flush_logs
from workstealing.client import queue_schedules
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    BadSignature,
    ConfigurationError,
    DuplicateSchedule,
    InputEnded,
    NotPermitted,
    PayloadInvalid,
    ScheduleNotFound,
)
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

Make = Callable[..., TaskQueue]
HOUR_MS = 3_600_000
SECRET = "a secret of some length"


def come(queue: TaskQueue, name: str, ago_ms: int = 0) -> int:
    """Let the next tick of a schedule be due, since some time."""
    internals = internals_of(queue)
    client: Any = internals.driver.client
    seconds, micros = client.time()
    tick = seconds * 1000 + micros // 1000 - ago_ms
    assert client.zadd(internals.keys.ticks, {name: tick}, xx=True, ch=True)
    return int(tick)


def ids(queue: TaskQueue) -> list[str]:
    internals = internals_of(queue)
    client: Any = internals.driver.client
    return sorted(each.decode() for each in client.hkeys(internals.keys.task))


def define_report(queue: TaskQueue, ran: list[str], **options: Any) -> Any:
    @queue.every("0 3 * * *", timezone="Europe/Berlin", name="report", **options)
    @queue.task(name="report")
    def report() -> None:
        ran.append("report")

    return report


def test_a_worker_declares_and_fires(make_queue: Make, crew: Any) -> None:
    queue, ran = make_queue(), []
    define_report(queue, ran)
    crew.start(queue)
    wait_until(queue.schedules, 10, "the schedule to be known")

    (state,) = queue.schedules()
    assert state.next is not None
    assert state.next > datetime.now(timezone.utc)
    assert (state.every, state.timezone) == ("0 3 * * *", "Europe/Berlin")
    assert (state.task, state.origin, state.fired) == ("report@1", "code", 0)
    come(queue, "report")
    wait_until(lambda: ran, 10, "the tick")

    (state,) = queue.schedules()
    assert (state.fired, state.passed, ran) == (1, 0, ["report"])
    assert state.last_id.startswith("report@")
    assert queue.handle(state.last_id).result(timeout=5) is None


def test_a_busy_worker_fires_too(make_queue: Make, crew: Any) -> None:
    queue, ran, goes_on = make_queue(), [], [True]
    define_report(queue, ran)

    @queue.task(name="long")
    def long() -> None:
        wait_until(lambda: not goes_on, 20, "the end")

    crew.start(queue)
    handle = long.submit()
    wait_until(lambda: handle.state().state is State.RUNNING, 10, "it to run")
    come(queue, "report")
    wait_until(lambda: queue.schedules()[0].fired, 10, "the tick")
    assert ran == []
    goes_on.clear()
    wait_until(lambda: ran, 10, "its task")


def test_web_traffic_alone_fires(make_queue: Make) -> None:
    web = make_queue()
    define_report(web, [])
    stealer = WorkStealer(web)
    stealer.recruited()
    come(web, "report")
    stealer.recruited()
    stealer.recruited()
    stealer.close()

    assert [each.rpartition("@")[0] for each in ids(web)] == ["report"]


async def test_asyncio_has_it_all(redis_server: Server, key_prefix: str) -> None:
    async with AsyncTaskQueue(key_prefix, redis_server.url) as queue:

        @queue.every(timedelta(hours=1), name="greet", arguments={"name": "Ann"})
        async def greet(name: str) -> str:
            return f"hello {name}"

        stealer = AsyncWorkStealer(queue)
        await stealer.recruited()
        (state,) = await queue.schedules()
        assert state.every == timedelta(hours=1)
        twin = queue.sync()
        come(twin, "greet")
        await stealer.recruited()
        await stealer.close()
        state = await queue.schedule_handle("greet").state()
        assert state.fired == 1
        await asyncio.to_thread(Worker(queue).run, until_empty=True)
        assert await queue.handle(state.last_id).result(timeout=5) == "hello Ann"

        handle = await queue.schedule(greet, "Bob", every=60, name="bob")
        assert await handle.pause()
        assert (await handle.state()).next is None
        assert await handle.resume()
        await handle.change(jitter=5)
        assert (await handle.state()).jitter == timedelta(seconds=5)
        run = await handle.run()
        await asyncio.to_thread(Worker(queue).run, until_empty=True)
        assert await run.result(timeout=5) == "hello Bob"
        assert await handle.remove()
        assert len(await queue.schedules()) == 1
        twin.close()


@pytest.mark.parametrize(
    ("missed", "fired", "passed"), [("skip", 0, 4), ("once", 1, 3), ("all", 4, 0)]
)
def test_after_a_downtime_missed_ticks_are_handled_as_asked(
    make_queue: Make, missed: Any, fired: int, passed: int
) -> None:
    queue = make_queue()

    # Its last tick was half an hour ago: no moment is too close to a tick for this.
    client: Any = internals_of(queue).driver.client
    minute = (int(client.time()[0]) // 60 + 30) % 60

    @queue.every(f"{minute} * * * *", name="hourly", missed=missed)
    def hourly() -> None:
        pass

    stealer = WorkStealer(queue)
    stealer.recruited()
    now = come(queue, "hourly")
    grid = (now - minute * 60_000) // HOUR_MS * HOUR_MS + minute * 60_000
    client.zadd(internals_of(queue).keys.ticks, {"hourly": grid - 3 * HOUR_MS})
    for _ in range(3):
        stealer.recruited()
    stealer.close()

    (state,) = queue.schedules()
    assert (state.fired, state.passed) == (fired, passed)
    assert len(ids(queue)) == fired
    assert state.next == datetime.fromtimestamp(grid / 1000 + 3600, timezone.utc)


def test_a_run_beside_the_ticks_keeps_to_the_limits_of_its_task(
    make_queue: Make,
) -> None:
    queue = make_queue()

    @queue.task(name="call", limit=Limit(concurrency=1, name="line"))
    def call() -> None: ...

    handle = queue.schedule(call, every=3600, name="calls")
    handle.run()

    internals = internals_of(queue)
    assert [limit.name for limit in queue.limits()] == ["line"]
    assert internals.driver.client.zcard(internals.keys.lines) == 1


def test_schedules_from_data_come_and_go(make_queue: Make) -> None:
    queue = make_queue()

    @queue.task(name="remind")
    def remind(customer: int, text: str = "") -> str:
        return f"{customer}{text}"

    for customer in range(150):
        queue.schedule(
            remind, customer, text="!", every=3600, name=f"remind-{customer}"
        )
    queue.schedule(remind, 7, every="0 9 * * MON", name="remind-7")

    states = queue.schedules()
    assert len(states) == 150
    handle = queue.schedule_handle("remind-7")
    assert handle.state().every == "0 9 * * MON"
    assert handle.state().origin == "data"
    run = handle.run()
    Worker(queue).run(until_empty=True)
    assert run.result(timeout=5) == "7"
    assert run.id.startswith("remind-7@")
    runs = {handle.run().id for _ in range(50)}
    assert len(runs) == 50, "in one millisecond too"
    Worker(queue).run(until_empty=True)
    assert queue.counts().stats["done"] == 51
    assert handle.remove()
    assert not handle.remove()
    with pytest.raises(ScheduleNotFound, match="remind-7"):
        handle.state()
    for act in (handle.pause, handle.resume, handle.run):
        with pytest.raises(ScheduleNotFound):
            act()


def test_a_schedule_is_changed_without_a_deploy(make_queue: Make) -> None:
    queue = make_queue()
    define_report(queue, [])
    WorkStealer(queue).recruited()
    handle = queue.schedule_handle("report")
    handle.change(every=timedelta(hours=2), missed="all")

    assert (handle.state().every, handle.state().missed) == (timedelta(hours=2), "all")
    WorkStealer(queue).recruited()
    assert handle.state().every == timedelta(hours=2), "the code has not changed"
    handle.change(every="0 4 * * *", timezone="Asia/Tokyo")
    state = handle.state()
    assert state.next is not None
    assert state.next.hour == 19
    handle.change(timezone="UTC")
    assert (handle.state().every, handle.state().timezone) == ("0 4 * * *", "UTC")
    with pytest.raises(ConfigurationError, match="say what to change"):
        handle.change()
    with pytest.raises(ConfigurationError, match="not a cron"):
        handle.change(every="never")


def test_an_interval_has_no_time_zone_to_change(queue: TaskQueue) -> None:
    @queue.task
    def note() -> None: ...

    handle = queue.schedule(note, every=60, name="note")

    with pytest.raises(ConfigurationError, match="timezone= is for cron"):
        handle.change(timezone="Europe/Berlin")
    assert handle.state().every == timedelta(seconds=60)


def gone_silent(queue: TaskQueue) -> None:
    """Let five minutes be over since the release that decides was last at work."""
    internals = internals_of(queue)
    client: Any = internals.driver.client
    client.hset(internals.keys.control, "schedule_release_spoke", 1)


@pytest.fixture
def deployed(make_queue: Make) -> tuple[TaskQueue, TaskQueue]:
    """Return a queue of an older release, and one of a newer that dropped `gone`."""
    old, new = make_queue(release=41), make_queue(release=42)
    for queue in (old, new):
        define_report(queue, [])

    @old.every(60, name="gone")
    def gone() -> None:
        pass

    return old, new


def names(queue: TaskQueue) -> list[str]:
    return [each.name for each in queue.schedules()]


def test_a_newer_release_decides_and_an_older_one_cannot_go_back(
    deployed: tuple[TaskQueue, TaskQueue],
) -> None:
    old, new = deployed
    WorkStealer(old).recruited()
    assert [each.name for each in new.schedules()] == ["gone", "report"]
    WorkStealer(new).recruited()
    WorkStealer(old).recruited()
    Worker(old).run(until_empty=True)
    assert [each.name for each in new.schedules()] == ["report"]


def test_after_a_rollback_a_worker_that_starts_brings_schedules_back(
    deployed: tuple[TaskQueue, TaskQueue], caplog: pytest.LogCaptureFixture
) -> None:
    old, new = deployed
    for queue in (old, new, old):
        Worker(queue).run(until_empty=True)
    assert names(old) == ["report"]
    assert flush_logs(10)
    assert "so these do not tick: gone. If release 42 was rolled back" in caplog.text

    gone_silent(old)
    Worker(old).run(until_empty=True)

    assert names(old) == ["gone", "report"]
    assert flush_logs(10)
    assert "release 41 decides again which schedules there are" in caplog.text


@pytest.mark.parametrize("by", ["worker", "recruit"])
def test_after_a_rollback_one_that_was_there_all_along_brings_schedules_back(
    deployed: tuple[TaskQueue, TaskQueue],
    crew: Any,
    by: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_schedules, "_RENEW_SECONDS", 0.0)
    old, new = deployed
    stealer = WorkStealer(old)
    if by == "worker":
        crew.start(old)
        wait_until(lambda: len(names(old)) == 2, 10, "the older release to declare")
    else:
        stealer.recruited()
    WorkStealer(new).recruited()
    assert names(old) == ["report"]

    def is_back() -> bool:
        gone_silent(old)
        if by == "recruit":
            stealer.recruited()
        return names(old) == ["gone", "report"]

    wait_until(is_back, 10, "the older release to decide again")
    stealer.close()


def test_a_removed_schedule_does_not_come_back_with_a_restart(make_queue: Make) -> None:
    queue = make_queue()
    define_report(queue, [])
    WorkStealer(queue).recruited()
    assert queue.schedule_handle("report").remove()
    WorkStealer(queue).recruited()
    Worker(queue).run(until_empty=True)
    assert queue.schedules() == ()

    assert queue.schedule_handle("report").resume()
    WorkStealer(queue).recruited()
    assert len(queue.schedules()) == 1


def test_a_jittered_task_waits_for_its_moment(make_queue: Make) -> None:
    queue = make_queue()
    define_report(queue, [], jitter=3600)
    stealer = WorkStealer(queue)
    stealer.recruited()
    come(queue, "report")
    stealer.recruited()
    stealer.close()

    (task_id,) = ids(queue)
    assert queue.handle(task_id).state().state is State.DELAYED


def test_a_task_nobody_knows_any_more_is_parked(make_queue: Make) -> None:
    new, old = make_queue(), make_queue()
    define_report(old, [])
    WorkStealer(old).recruited()
    come(new, "report")
    stealer = WorkStealer(new)
    stealer.recruited()
    stealer.close()
    Worker(new).run(until_empty=True)

    (task_id,) = ids(new)
    assert new.handle(task_id).state().state is State.PARKED


def test_garbage_stops_neither_other_schedules_nor_the_worker(
    make_queue: Make, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue()
    define_report(queue, [])
    stealer = WorkStealer(queue)
    stealer.recruited()
    internals = internals_of(queue)
    client: Any = internals.driver.client
    for number in range(25):
        name = b"\xff%d" % number
        client.hset(internals.keys.schedules, name, b"\x00garbage")
        client.zadd(internals.keys.ticks, {name: number - 5})
    for spoilt in ("[]", '{"v": 1}', "{" * 5000, '{"v":1,"cron":"x"}'):
        client.hset(internals.keys.schedules, f"bad {len(spoilt)}", spoilt)
        client.zadd(internals.keys.ticks, {f"bad {len(spoilt)}": "-inf"})
    client.hset(internals.keys.firings, "report", "no:numbers:at:all")
    client.hset(internals.keys.declared_schedules, "bad 2", "\x00")
    come(queue, "report")
    for _ in range(3):
        stealer.recruited()
    stealer.close()
    Worker(queue).run(until_empty=True)

    (report,) = (each for each in queue.schedules() if each.name == "report")
    assert report.fired == 1
    problems = [each for each in queue.schedules() if each.problem]
    assert len(problems) == 29
    flush_logs()
    assert "cannot be fired: not a schedule" in caplog.text


def test_who_fires_signs_and_what_is_not_signed_is_not_fired(make_queue: Make) -> None:
    queue, stranger = make_queue(secret=SECRET), make_queue()
    define_report(queue, [])
    stealer = WorkStealer(queue)
    stealer.recruited()
    come(queue, "report")
    without = WorkStealer(stranger)
    without.recruited()
    assert stranger.schedule_handle("report").state().problem == ""
    with pytest.raises(BadSignature, match="no secret"):
        stranger.schedule_handle("report").run()
    assert ids(queue) == [], "one without the secret leaves it to others"
    stealer.recruited()
    (task_id,) = ids(queue)
    Worker(queue).run(until_empty=True)
    assert queue.handle(task_id).state().state is State.DONE

    @stranger.task(name="report")
    def forged() -> None:
        pass

    stranger.schedule(forged, every=60, name="forged")
    come(queue, "forged")
    stealer.recruited()
    assert ids(queue) == []
    assert "not signed" in queue.schedule_handle("forged").state().problem
    stealer.close()
    without.close()


def test_the_definition_of_one_schedule_does_not_pass_for_another(
    make_queue: Make,
) -> None:
    queue = make_queue(secret=SECRET)
    define_report(queue, [])
    stealer = WorkStealer(queue)
    stealer.recruited()
    internals = internals_of(queue)
    client: Any = internals.driver.client
    genuine = client.hget(internals.keys.schedules, "report")
    client.hset(internals.keys.schedules, "other", genuine)
    client.zadd(internals.keys.ticks, {"other": 5})
    stealer.recruited()
    stealer.close()
    assert ids(queue) == []


def test_a_schedule_calls_on_somebodys_behalf(make_queue: Make) -> None:
    policy = AccessPolicy({"editor": ["write"]})
    queue = make_queue(policy=policy)

    @queue.task(name="write", permission="write")
    def write() -> None:
        pass

    with pytest.raises(NotPermitted):
        queue.every(60)(write)
    editor = ClientContext(principal="ann", roles={"editor"})
    queue.every(60)(write.options(context=editor, log=True, priority=0))
    stealer = WorkStealer(queue)
    stealer.recruited()
    come(queue, "write")
    stealer.recruited()
    stealer.close()
    internals = internals_of(queue)
    client: Any = internals.driver.client
    (envelope,) = map(json.loads, client.hvals(internals.keys.task))
    assert (envelope["principal"], envelope["roles"]) == ("ann", ["editor"])
    assert (envelope["log"], envelope["priority"]) == (True, 0)


def test_bad_input_is_refused_where_it_is_written(make_queue: Make) -> None:
    queue, other = make_queue(), make_queue(run="other")

    @queue.task(name="add")
    def add(number: int) -> int:
        return number

    with pytest.raises(PayloadInvalid, match="number"):
        queue.every(60)(add)
    with pytest.raises(PayloadInvalid):
        queue.schedule(add, "one", every=60, name="s")
    with pytest.raises(ConfigurationError, match="no time zone"):
        queue.schedule(add, 1, every="* * * * *", timezone="Mars", name="s")
    with pytest.raises(ConfigurationError, match="is a task of"):
        other.every(60, arguments=(1,))(add)
    with pytest.raises(ConfigurationError, match="needs a task"):
        queue.schedule(print, every=60, name="s")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="leave out id="):
        queue.schedule(add.options(id="x"), 1, every=60, name="s")
    with pytest.raises(ConfigurationError, match="release must be"):
        make_queue(release=-1)
    for text in ("1", b"1", 1):
        with pytest.raises(ConfigurationError, match="must be a tuple by position"):
            queue.every(60, arguments=text)(add)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="must be a tuple by position"):
            add.submit_many([text])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="the name of a schedule must be"):
        queue.every(60, name="", arguments=(1,))(add)
    make_queue(release=None)
    queue.every(60, arguments=(1,))(add)
    with pytest.raises(DuplicateSchedule, match="another name="):
        queue.every(90, arguments=(1,))(add)
    with pytest.raises(DuplicateSchedule, match=r"@queue\.every"):
        queue.schedule(add, 1, every=60, name="add")
    WorkStealer(queue).recruited()
    with pytest.raises(DuplicateSchedule, match=r"@queue\.every"):
        make_queue().schedule(add, 1, every=60, name="add")
    queue.end_input()
    with pytest.raises(InputEnded):
        queue.schedule_handle("add").run()


@pytest.mark.parametrize("until", ["started", "done", 60])
def test_a_tick_is_passed_over_while_a_task_has_its_unique_key(
    make_queue: Make, until: Any
) -> None:
    queue = make_queue()

    @queue.every(3600, name="sync", arguments=("eu",))
    @queue.task(name="sync", unique=Unique(until=until))
    def sync(region: str) -> str:
        return region

    run_flow = internals_of(queue).driver.run
    schedules = internals_of(queue).schedules
    run_flow(schedules.declare())
    submitted = sync.submit("eu")
    handle = queue.schedule_handle("sync")
    come(queue, "sync")
    run_flow(schedules.fire_due())
    state = handle.state()
    assert (state.fired, state.passed, ids(queue)) == (0, 1, [submitted.id])
    run = handle.run()
    assert (run.id, run.is_new) == (submitted.id, False)

    submitted.cancel()
    come(queue, "sync")
    run_flow(schedules.fire_due())
    is_free = until != 60
    assert handle.state().fired == is_free
    if is_free:
        # The task of the tick has the key now.
        again = sync.submit("eu")
        assert (again.is_new, again.id) == (False, handle.state().last_id)
        assert sync.submit("us").is_new


def test_run_of_a_schedule_keeps_to_the_limits_of_its_task(make_queue: Make) -> None:
    queue = make_queue()

    @queue.every(3600, name="sync")
    @queue.task(name="sync", limit=Limit(concurrency=1, name="one"))
    def sync() -> None: ...

    internals = internals_of(queue)
    internals.driver.run(internals.schedules.declare())
    assert queue.schedule_handle("sync").run().is_new
    assert [limit.name for limit in queue.limits()] == ["one"]


def test_a_debounced_task_has_no_schedule(make_queue: Make) -> None:
    queue = make_queue()

    @queue.task(name="sync", unique=Unique(debounce=5))
    def sync() -> None: ...

    with pytest.raises(ConfigurationError, match="debounce= says when task 'sync'"):
        queue.every(60)(sync)
