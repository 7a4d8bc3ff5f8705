"""What only a queue in memory can do: run, move the time, crash and steal on demand."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from threading import get_ident
from typing import Annotated

import pytest

from workstealing import (
    INJECTED,
    ClientContext,
    ExecutionContext,
    Inspector,
    Limit,
    MemberResult,
    Recruiter,
    Resource,
    Snooze,
    TaskClient,
    TaskQueue,
    Worker,
    WorkerPool,
    WorkStealer,
    group,
)
from workstealing._logs import flush_logs
from workstealing.errors import (
    ConfigurationError,
    ResourceFailed,
    ResultTimeout,
    TaskNotFound,
)
from workstealing.tasks.envelope import Envelope
from workstealing.telemetry import TasksStolen
from workstealing.testing import (
    MemoryQueue,
    RecordingObserver,
    WorkerDied,
    wait_until,
)
from workstealing.testing.submitted_tasks import moment_of

HOUR = timedelta(hours=1)


@pytest.fixture
def seen() -> list[str]:
    return []


def test_drain_runs_tasks_in_the_thread_of_the_caller(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def where() -> int:
        return get_ident()

    handle = where.submit()
    memory_queue.drain()

    assert handle.result(1) == get_ident()


def test_drain_says_what_ran_and_how_it_ended(memory_queue: MemoryQueue) -> None:
    @memory_queue.task(name="divide")
    def divide(dividend: int, divisor: int, context: ExecutionContext) -> float:
        return dividend / divisor

    divide.submit(6, 3)
    divide.submit(1, divisor=0)
    good, bad = memory_queue.drain()

    assert (good.task, good.outcome, good.result) == ("divide", "done", 2.0)
    assert good.arguments == {"dividend": 6, "divisor": 3}
    assert bad.outcome == "failed"
    assert isinstance(bad.error, ZeroDivisionError)


def test_drain_raises_what_a_task_raised_with_its_traceback(
    memory_queue: MemoryQueue,
) -> None:
    def inner() -> None:
        raise LookupError("deep inside")

    @memory_queue.task
    def outer() -> None:
        inner()

    outer.submit()

    with pytest.raises(LookupError, match="deep inside") as caught:
        memory_queue.drain(raises=True)
    assert "inner" in [entry.name for entry in caught.traceback]


def test_an_attempt_that_is_tried_again_is_not_raised(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(retries=1)
    def flaky(context: ExecutionContext) -> None:
        if context.attempt == 1:
            raise OSError("once")

    flaky.submit()
    ran = memory_queue.drain(until="all", raises=True)

    assert [one.outcome for one in ran] == ["retry", "done"]
    assert isinstance(ran[0].error, OSError)


def test_a_task_that_submits_itself_does_not_hang_the_test(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="forever")
    def forever() -> None:
        forever.submit()

    forever.submit()

    with pytest.raises(ConfigurationError, match="does 'forever' submit itself"):
        memory_queue.drain(most=5)
    # The queue is as it would be after a worker that was stopped.
    assert memory_queue.counts().unfinished == 1


def test_as_many_attempts_as_are_allowed_are_made(memory_queue: MemoryQueue) -> None:
    @memory_queue.task
    def note() -> None: ...

    note.submit_many([()] * 3)

    assert len(memory_queue.drain(most=3)) == 3


def test_a_task_that_drains_its_own_queue_is_told_so(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def drain() -> None:
        memory_queue.drain()

    drain.submit()

    with pytest.raises(ConfigurationError, match="is running already"):
        memory_queue.drain(raises=True)


def test_a_resource_that_does_not_open_ends_the_drain(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.resource
    def database() -> Iterator[bytes]:
        raise OSError("no database")
        yield b""

    @memory_queue.task
    def query(db: Annotated[bytes, Resource] = INJECTED) -> None: ...

    handle = query.submit()

    with pytest.raises(ResourceFailed, match="no database"):
        memory_queue.drain()
    assert handle.state().state == "waiting"


def test_time_stands_still_until_it_is_moved(memory_queue: MemoryQueue) -> None:
    before = memory_queue.now
    memory_queue.drain()
    unmoved = memory_queue.now
    memory_queue.advance(1.5)
    memory_queue.advance(HOUR)

    assert unmoved == before
    assert memory_queue.now == before + HOUR + timedelta(seconds=1.5)


def test_a_delayed_task_runs_when_its_time_has_come(memory_queue: MemoryQueue) -> None:
    @memory_queue.task
    def remind() -> None: ...

    remind.submit_in(HOUR)
    memory_queue.advance(3599.999)
    too_early = memory_queue.drain()
    memory_queue.advance(0.001)

    assert too_early == []
    assert [one.outcome for one in memory_queue.drain()] == ["done"]


def test_drain_of_all_moves_the_time_to_what_is_due(memory_queue: MemoryQueue) -> None:
    began = memory_queue.now

    @memory_queue.task
    def remind() -> None: ...

    remind.submit_in(HOUR)
    remind.submit_at(began + 3 * HOUR)
    ran = memory_queue.drain(until="all")

    assert len(ran) == 2
    assert memory_queue.now == began + 3 * HOUR


def test_drain_of_all_does_not_move_for_a_schedule_alone(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.every("0 3 * * *")
    @memory_queue.task
    def nightly() -> None: ...

    assert memory_queue.drain(until="all") == []


def test_schedules_follow_the_time_from_the_beginning(
    memory_queue: MemoryQueue, seen: list[str]
) -> None:
    @memory_queue.every("30 3 * * *", timezone="UTC")
    @memory_queue.task(name="nightly")
    def nightly() -> None:
        seen.append(f"{memory_queue.now:%d %H:%M}")

    memory_queue.travel_to(datetime(2024, 2, 28, 12, 0, tzinfo=timezone.utc))
    for _ in range(2):
        memory_queue.advance(timedelta(days=1))
        memory_queue.drain()

    assert seen == ["29 12:00", "01 12:00"]
    assert memory_queue.assert_submitted("nightly")


def test_a_task_expires_by_the_moved_time(memory_queue: MemoryQueue) -> None:
    @memory_queue.task(expires=60)
    def urgent() -> None: ...

    urgent.submit()
    memory_queue.advance(61)

    assert [one.outcome for one in memory_queue.drain()] == ["expired"]


@pytest.mark.parametrize("days", [-400, 400])
def test_chains_and_groups_expire_by_the_time_of_the_memory(days: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=days)
    with MemoryQueue(now=now) as queue:

        @queue.task(expires=60)
        def double(number: int) -> int:
            return number * 2

        @queue.task
        def add_up(results: list[MemberResult[int]]) -> int:
            return sum(one.result() for one in results)

        in_time = (group(double.s(1), double.s(2)) | add_up.s()).submit()
        queue.drain()
        late = (double.s(1) | double.s()).submit()
        queue.advance(61)
        queue.drain()

        assert {one.at for one in queue.submitted} == {now}
        assert in_time.result(1) == 6
        assert late.steps[0].state().state == "expired"


def test_a_snooze_until_a_moment_is_by_the_moved_time(
    memory_queue: MemoryQueue,
) -> None:
    memory_queue.advance(timedelta(days=400))
    moment = memory_queue.now + HOUR

    @memory_queue.task
    def wait_for_it() -> None:
        if memory_queue.now < moment:
            raise Snooze(until=moment)

    wait_for_it.submit()
    memory_queue.drain(until="all")

    assert memory_queue.now == moment


def test_a_rate_is_exact(memory_queue: MemoryQueue) -> None:
    @memory_queue.task(limit=Limit(rate=5, period=60))
    def call(number: int) -> None: ...

    call.submit_many([(n,) for n in range(12)])
    numbers = [len(memory_queue.drain())]
    for _ in range(2):
        memory_queue.advance(60)
        numbers.append(len(memory_queue.drain()))

    assert numbers == [5, 5, 2]


def test_outcomes_are_forgotten_by_the_moved_time(memory_queue: MemoryQueue) -> None:
    @memory_queue.task
    def quick() -> None: ...

    handle = quick.submit()
    memory_queue.drain()
    memory_queue.advance(timedelta(days=365))
    memory_queue.drain()

    with pytest.raises(TaskNotFound):
        handle.result(1)


def test_time_goes_back_only_before_the_first_task(memory_queue: MemoryQueue) -> None:
    past = datetime(2001, 1, 1, tzinfo=timezone.utc)

    @memory_queue.task
    def note() -> None: ...

    memory_queue.travel_to(past)
    note.submit()

    with pytest.raises(ConfigurationError, match="tasks were submitted"):
        memory_queue.travel_to(past - HOUR)
    memory_queue.clear()
    memory_queue.travel_to(past - HOUR)
    assert memory_queue.now == past - HOUR


def test_a_task_whose_worker_died_runs_again_after_the_lease(
    seen: list[str],
) -> None:
    queue = MemoryQueue("crashing", lease=10)

    @queue.task
    def charge(context: ExecutionContext) -> None:
        seen.append(context.worker)

    handle = charge.submit()
    queue.crash(charge)
    crashed = queue.drain()
    at_once = queue.drain()
    queue.advance(10)
    again = queue.drain()

    assert [one.outcome for one in crashed] == ["crashed"]
    assert at_once == []
    assert [one.outcome for one in again] == ["done"]
    assert seen == [crashed[0].worker, again[0].worker]
    assert handle.state().state == "done"


def test_a_worker_dies_before_its_task_does_anything(
    memory_queue: MemoryQueue, seen: list[str]
) -> None:
    @memory_queue.task
    def charge() -> None:
        seen.append("charged")

    charge.submit()
    memory_queue.crash(at="begin")
    ran = memory_queue.drain(until="all")

    assert [one.outcome for one in ran] == ["crashed", "done"]
    assert seen == ["charged"]


def test_a_worker_dies_with_a_task_that_has_raised_too(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def charge() -> None:
        raise LookupError("no such account")

    handle = charge.submit()
    memory_queue.crash(charge)
    ran = memory_queue.drain(until="all")

    assert [one.outcome for one in ran] == ["crashed", "failed"]
    assert isinstance(ran[0].error, LookupError)
    assert memory_queue.handle(handle.id).state().state == "failed"


def test_a_worker_dies_wherever_a_test_wants_it_to(
    memory_queue: MemoryQueue, seen: list[str]
) -> None:
    @memory_queue.task
    async def transfer(context: ExecutionContext) -> None:
        seen.append("taken")
        if len(seen) == 1:
            raise WorkerDied
        seen.append("given")

    transfer.submit()
    memory_queue.drain(until="all")

    assert seen == ["taken", "taken", "given"]


def test_a_crash_takes_no_other_task_with_it(
    memory_queue: MemoryQueue, seen: list[str]
) -> None:
    @memory_queue.task(name="plain")
    def plain(number: int) -> None:
        seen.append(f"plain {number}")

    @memory_queue.task(name="fatal")
    def fatal() -> None:
        seen.append("fatal")

    plain.submit(1)
    fatal.submit()
    plain.submit(2)
    memory_queue.crash("fatal")
    ran = memory_queue.drain(until="all")

    assert seen == ["plain 1", "fatal", "plain 2", "fatal"]
    assert [one.outcome for one in ran] == ["done", "crashed", "done", "done"]


def test_a_task_that_kills_every_worker_is_given_up(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def poison() -> None:
        raise WorkerDied

    handle = poison.submit()
    ran = memory_queue.drain(until="all")

    assert {one.outcome for one in ran} == {"crashed"}
    assert handle.state().state == "dead"


def test_a_task_that_must_not_run_twice_does_not(memory_queue: MemoryQueue) -> None:
    @memory_queue.task(idempotent=False)
    def pay() -> None: ...

    handle = pay.submit()
    memory_queue.crash(pay)
    ran = memory_queue.drain(until="all")

    assert [one.outcome for one in ran] == ["crashed"]
    assert handle.state().state == "dead"


def test_a_second_worker_steals_from_the_first() -> None:
    observer = RecordingObserver()
    queue = MemoryQueue("stealing", observers=[observer])

    @queue.task
    def work(number: int) -> None: ...

    work.submit_many([(n,) for n in range(8)])
    queue.steal()
    ran = queue.drain()

    assert sorted(one.arguments["number"] for one in ran) == list(range(8))
    assert len({one.worker for one in ran}) == 2
    wait_until(lambda: observer.of(TasksStolen), 5, "a theft to be told")
    theft = observer.of(TasksStolen)[0]
    assert theft.victim == ran[-1].worker
    assert theft.worker == ran[0].worker


def test_a_thief_dies_with_what_it_runs(memory_queue: MemoryQueue) -> None:
    @memory_queue.task(name="work")
    def work(number: int) -> None: ...

    work.submit_many([(n,) for n in range(6)])
    memory_queue.steal()
    memory_queue.crash()
    ran = memory_queue.drain()
    later = memory_queue.drain(until="all")

    assert [one.outcome for one in ran].count("crashed") == 1
    crashed = next(one for one in ran if one.outcome == "crashed")
    assert crashed.arguments in [one.arguments for one in later]
    assert memory_queue.counts().unfinished == 0


def test_a_task_may_move_the_time_itself(memory_queue: MemoryQueue) -> None:
    @memory_queue.task(name="remind")
    def remind() -> None: ...

    @memory_queue.task(name="slow")
    def slow() -> None:
        remind.submit_in(30)
        memory_queue.advance(60)

    slow.submit()

    assert [one.task for one in memory_queue.drain()] == ["slow", "remind"]


def test_a_theft_that_was_planned_waits_for_its_task(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def work(number: int) -> None: ...

    memory_queue.steal(work)
    nothing = memory_queue.drain()
    work.submit_many([(n,) for n in range(4)])

    assert nothing == []
    assert len({one.worker for one in memory_queue.drain()}) == 2
    assert memory_queue.counts().unfinished == 0


def test_what_was_submitted_is_listed_with_its_arguments(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="resize")
    def resize(path: str, sizes: tuple[int, ...] = (100,)) -> None: ...

    handle = resize.submit("a.png")
    resize.submit_in(60, "b.png", sizes=(1, 2))
    memory_queue.drain()
    first, second = memory_queue.submitted

    assert (first.name, first.id) == ("resize", handle.id)
    assert first.arguments == {"path": "a.png", "sizes": (100,)}
    assert first.at == memory_queue.now
    assert first.due is None
    assert second.due == memory_queue.now + timedelta(minutes=1)


def test_a_submission_is_asserted_by_some_of_its_arguments(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="resize")
    def resize(path: str, sizes: list[int], quality: int = 80) -> None: ...

    handle = resize.submit("a.png", [1, 2])

    assert memory_queue.assert_submitted(resize).id == handle.id
    memory_queue.assert_submitted(resize, "a.png")
    memory_queue.assert_submitted(resize, sizes=(1, 2))
    memory_queue.assert_submitted("resize", quality=80)
    memory_queue.assert_not_submitted(resize, "b.png")


def test_a_failed_assertion_shows_what_was_submitted_instead(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="other")
    def other() -> None: ...

    @memory_queue.task(name="mail")
    def mail(to: str, subject: str = "Hello") -> None: ...

    with pytest.raises(AssertionError, match="nor was anything else"):
        memory_queue.assert_submitted(mail)
    other.submit()
    mail.submit("ann")
    with pytest.raises(AssertionError) as caught:
        memory_queue.assert_submitted(mail, to="bob")
    assert str(caught.value) == (
        "mail(to='bob', …) was not submitted. What was:\n"
        "  mail(to='ann', subject='Hello')\n"
        "  other()"
    )
    with pytest.raises(AssertionError, match="submitted once") as caught:
        memory_queue.assert_not_submitted(mail, "ann")
    assert "subject='Hello'" in str(caught.value)


def test_an_assertion_with_an_unknown_argument_is_a_mistake(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="mail")
    def mail(to: str) -> None: ...

    with pytest.raises(ConfigurationError, match="subjekt"):
        memory_queue.assert_not_submitted(mail, subjekt="x")
    with pytest.raises(ConfigurationError, match="by name"):
        memory_queue.assert_submitted("mail", "ann")


def test_clear_forgets_tasks_and_keeps_the_time(memory_queue: MemoryQueue) -> None:
    @memory_queue.task
    def note() -> None: ...

    memory_queue.advance(HOUR)
    now = memory_queue.now
    note.submit()
    memory_queue.crash()
    memory_queue.clear()

    assert memory_queue.submitted == []
    assert memory_queue.drain() == []
    assert memory_queue.now == now
    note.submit()
    assert [one.outcome for one in memory_queue.drain()] == ["done"]


def test_a_result_that_nobody_has_computed_says_where_the_task_is(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def note() -> None: ...

    with pytest.raises(ResultTimeout, match=r"it is waiting; .* call drain\(\)"):
        note.submit().result(0.01)


def test_workers_and_pools_run_on_it_too(memory_queue: MemoryQueue) -> None:
    @memory_queue.task
    def double(number: int) -> int:
        return number * 2

    handle = double.submit(1)
    Worker(memory_queue).run(until_empty=True)
    assert handle.result(1) == 2
    with WorkerPool(memory_queue, workers=2):
        handles = double.submit_many([(n,) for n in range(20)])
        assert [one.result(20) for one in handles] == [2 * n for n in range(20)]


def test_whatever_takes_a_url_takes_that_of_the_memory(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="note")
    def note() -> None: ...

    note.submit()

    with TaskQueue(memory_queue.name, memory_queue.url) as other:
        assert other.counts().unfinished == 1
        assert [row.task for row in Inspector(other).ls()] == ["note@1"]


def test_a_recruit_does_the_upkeep_of_a_queue_in_memory(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task
    def note() -> None: ...

    recruiter = Recruiter()
    recruiter.install(WorkStealer(memory_queue), "upkeep", rate=1.0)
    handle = note.submit_in(5)
    memory_queue.advance(5)
    for _ in range(3):
        recruiter.enlist()

    assert handle.state().state == "waiting"


def test_a_task_client_calls_tasks_of_a_queue_in_memory(
    memory_queue: MemoryQueue,
) -> None:
    @memory_queue.task(name="double")
    def double(number: int) -> int:
        return number * 2

    client = TaskClient(memory_queue)
    handle = client.submit(ClientContext(), "double", {"number": 4}, int)
    memory_queue.drain()

    assert handle.result(1) == 8


@pytest.mark.parametrize("days", [-400, 400])
def test_a_call_expires_by_the_time_of_the_memory(
    memory_queue: MemoryQueue, days: int
) -> None:
    memory_queue.travel_to(memory_queue.now + timedelta(days=days))

    @memory_queue.task(name="double")
    def double(number: int) -> int:
        return number * 2

    with pytest.raises(ResultTimeout):
        TaskClient(memory_queue).call(
            ClientContext(), "double", {"number": 4}, int, timeout=0.01
        )

    (submitted,) = memory_queue.submitted
    deadline_ms = Envelope.read(submitted.envelope).deadline or 0
    assert moment_of(deadline_ms * 1_000_000) == memory_queue.now + timedelta(
        seconds=0.01
    )


def test_drain_inside_of_an_event_loop_says_what_to_do(
    memory_queue: MemoryQueue,
) -> None:
    async def story() -> None:
        memory_queue.drain()

    with pytest.raises(ConfigurationError, match="await drain_async"):
        asyncio.run(story())


def test_a_queue_that_was_closed_refuses() -> None:
    queue = MemoryQueue()

    @queue.task
    def note() -> None: ...

    queue.close()

    with pytest.raises(ConfigurationError, match="ended with its test"):
        note.submit()


def test_the_url_of_another_process_is_refused() -> None:
    queue = TaskQueue("x", "memory://0123abcd")

    with pytest.raises(ConfigurationError, match="belongs to another process"):
        queue.counts()


@pytest.mark.parametrize("option", ["redis", "clock"])
def test_a_queue_in_memory_has_a_server_and_a_clock_of_its_own(option: str) -> None:
    with pytest.raises(ConfigurationError, match=f"leave out {option}="):
        MemoryQueue("x", **{option: None})


def test_bad_arguments_are_refused(memory_queue: MemoryQueue) -> None:
    with pytest.raises(ConfigurationError, match="until"):
        memory_queue.drain(until="later")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="most"):
        memory_queue.drain(most=0)
    with pytest.raises(ConfigurationError, match="by"):
        memory_queue.advance(-1)
    with pytest.raises(ConfigurationError, match="time zone"):
        memory_queue.travel_to(datetime(2030, 1, 1))
    with pytest.raises(ConfigurationError, match="at must be"):
        memory_queue.crash(at="middle")  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["fakeredis", "lupa"])
def test_a_missing_package_is_named_with_its_extra(package: str) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from workstealing.testing import Server\n"
        "from workstealing.errors import MissingExtra\n"
        "try:\n"
        "    from workstealing.testing import MemoryQueue\n"
        "except MissingExtra as error:\n"
        "    print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "pip install 'workstealing[testing]'" in done.stdout


def test_whoever_reads_logs_learns_that_a_worker_has_died(
    memory_queue: MemoryQueue, caplog: pytest.LogCaptureFixture
) -> None:
    task = memory_queue.task(name="echo")(lambda text: text)
    task_id = task.submit("hello").id
    memory_queue.crash(at="begin")

    memory_queue.drain(until="all")

    assert flush_logs()
    (said,) = (text for text in caplog.messages if "its lease has ended" in text)
    assert "1 of its tasks go to others, and 0 are given up" in said
    assert f"it may have been running {task_id}" in said
