"""The same stories on a queue in memory and on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from redis import Redis

from workstealing import (
    INJECTED,
    ExecutionContext,
    GiveUp,
    Limit,
    Middleware,
    Resource,
    Snooze,
    TaskCall,
    TaskQueue,
    Unique,
    Worker,
)
from workstealing.errors import (
    BadSignature,
    InputEnded,
    PayloadInvalid,
    QueueFull,
    TaskCancelled,
    TaskExpired,
    TaskFailed,
    TaskNotFound,
)
from workstealing.testing import MemoryQueue, Server, wait_until

Until = Literal["now", "all"]


@dataclass
class Bench:
    """A queue, what runs its tasks, and what lets some time pass."""

    queue: TaskQueue
    url: str
    drain: Callable[[Until], Any]
    pass_time: Callable[[float], None]


MakeBench = Callable[..., Bench]


@pytest.fixture(params=["memory", "server"])
def make_bench(request: pytest.FixtureRequest, key_prefix: str) -> Iterator[MakeBench]:
    made: list[TaskQueue] = []

    def on_a_server(**options: Any) -> Bench:
        server: Server = request.getfixturevalue("redis_server")
        client: Redis = request.getfixturevalue("redis_client")
        queue = TaskQueue(key_prefix, server.url, **options)
        made.append(queue)

        def drain(until: Until) -> None:
            Worker(queue).run(until_empty="all" if until == "all" else True)

        def now() -> float:
            seconds, microseconds = client.time()
            return float(seconds + microseconds / 1e6)

        def pass_time(seconds: float) -> None:
            end = now() + seconds
            wait_until(lambda: now() > end, 20, "the clock of the server")

        return Bench(queue, server.url, drain, pass_time)

    def in_memory(**options: Any) -> Bench:
        queue = MemoryQueue(key_prefix, **options)
        made.append(queue)
        return Bench(
            queue, queue.url, lambda until: queue.drain(until=until), queue.advance
        )

    yield in_memory if request.param == "memory" else on_a_server
    for queue in made:
        queue.close()


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    return make_bench()


def test_a_result_comes_back_in_its_type(bench: Bench) -> None:
    @bench.queue.task
    def half(of: timedelta) -> timedelta:
        return of / 2

    handle = half.submit(timedelta(hours=1))
    bench.drain("now")

    assert handle.result(5) == timedelta(minutes=30)
    assert str(handle.state()).startswith("done")


def test_a_payload_of_the_wrong_type_is_refused(bench: Bench) -> None:
    @bench.queue.task
    def count(number: int) -> None: ...

    with pytest.raises(PayloadInvalid, match="number"):
        count.submit("many")  # type: ignore[arg-type]


def test_a_coroutine_runs(bench: Bench) -> None:
    @bench.queue.task
    async def double(number: int) -> int:
        return number * 2

    handle = double.submit(21)
    bench.drain("now")

    assert handle.result(5) == 42


def test_a_task_submits_another(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task
    def second(number: int) -> None:
        seen.append(number)

    @bench.queue.task
    def first(number: int) -> None:
        second.submit(number + 1)

    first.submit(1)
    bench.drain("now")

    assert seen == [2]


def test_urgent_tasks_come_first(bench: Bench) -> None:
    seen: list[str] = []

    @bench.queue.task
    def note(word: str) -> None:
        seen.append(word)

    note.options(priority=2).submit("whenever")
    note.submit("normal")
    note.options(priority=0).submit("urgent")
    bench.drain("now")

    assert seen == ["urgent", "normal", "whenever"]


def test_a_task_is_tried_again_and_then_succeeds(bench: Bench) -> None:
    attempts: list[int] = []

    @bench.queue.task(retries=3)
    def flaky(context: ExecutionContext) -> str:
        attempts.append(context.attempt)
        if context.attempt < 3:
            raise OSError("not yet")
        return "at last"

    handle = flaky.submit()
    bench.drain("all")

    assert handle.result(5) == "at last"
    assert attempts == [1, 2, 3]


def test_a_task_that_fails_for_good_is_a_dead_letter(bench: Bench) -> None:
    @bench.queue.task
    def fail() -> None:
        raise ValueError("not today")

    handle = fail.submit()
    bench.drain("now")

    with pytest.raises(TaskFailed, match="not today"):
        handle.result(5)
    assert bench.queue.counts().dead == 1


def test_a_dead_letter_is_replayed(bench: Bench) -> None:
    is_broken = [True]

    @bench.queue.task
    def fragile() -> str:
        if is_broken[0]:
            raise ValueError("broken")
        return "mended"

    handle = fragile.submit()
    bench.drain("now")
    is_broken[0] = False
    is_replayed = bench.queue.replay(handle.id)
    bench.drain("now")

    assert is_replayed
    assert handle.result(5) == "mended"
    assert bench.queue.counts().dead == 0


def test_a_dead_letter_is_dropped(bench: Bench) -> None:
    @bench.queue.task
    def fail() -> None:
        raise ValueError("no")

    handle = fail.submit()
    bench.drain("now")

    assert bench.queue.drop(handle.id)
    with pytest.raises(TaskNotFound):
        handle.result(5)


def test_a_task_gives_up_at_once(bench: Bench) -> None:
    attempts: list[int] = []
    told: list[str] = []

    @bench.queue.task(retries=5, on_give_up=lambda _, reason: told.append(reason))
    def hopeless(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        raise GiveUp("no such account")

    hopeless.submit()
    bench.drain("all")

    assert attempts == [1]
    assert "no such account" in told[0]


def test_a_snoozed_task_runs_again_and_has_lost_no_attempt(bench: Bench) -> None:
    attempts: list[int] = []

    @bench.queue.task
    def poll(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        if len(attempts) == 1:
            raise Snooze(0.05)

    poll.submit()
    bench.drain("all")

    assert attempts == [1, 1]


def test_a_delayed_task_waits_for_its_time(bench: Bench) -> None:
    @bench.queue.task
    def later() -> str:
        return "now"

    handle = later.submit_in(0.3)
    bench.drain("now")
    before = str(handle.state())
    bench.drain("all")

    assert before.startswith("delayed")
    assert handle.result(5) == "now"


def test_a_cancelled_task_does_not_run(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task
    def note() -> None:
        seen.append(1)

    handle = note.submit()
    handle.cancel()
    bench.drain("now")

    assert seen == []
    with pytest.raises(TaskCancelled):
        handle.result(5)


def test_a_task_that_expired_does_not_run(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task(expires=0.05)
    def note() -> None:
        seen.append(1)

    handle = note.submit()
    bench.pass_time(0.1)
    bench.drain("now")

    assert seen == []
    with pytest.raises(TaskExpired):
        handle.result(5)


def test_a_schedule_of_the_code_fires(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.every(1.0)
    @bench.queue.task
    def tick() -> None:
        seen.append(1)

    bench.drain("now")
    before = len(seen)
    bench.pass_time(1.0)
    bench.drain("now")

    assert before == 0
    assert len(seen) >= 1


def test_a_schedule_that_comes_from_data_is_paused_and_removed(bench: Bench) -> None:
    seen: list[str] = []

    @bench.queue.task
    def report(region: str) -> None:
        seen.append(region)

    handle = bench.queue.schedule(report, "north", every=1, name="north")
    handle.pause()
    bench.pass_time(1.0)
    bench.drain("now")
    paused = list(seen)
    handle.resume()
    bench.pass_time(1.0)
    bench.drain("now")
    handle.remove()

    assert paused == []
    assert set(seen) == {"north"}
    assert bench.queue.schedules() == ()


def test_a_rate_holds_tasks_back(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task(limit=Limit(rate=2, period=1))
    def call(number: int) -> None:
        seen.append(number)

    call.submit_many([(n,) for n in range(4)])
    bench.drain("now")
    at_first = list(seen)
    bench.drain("all")

    assert at_first[:2] == [0, 1]
    assert len(at_first) < 4
    assert seen == [0, 1, 2, 3]


def test_fair_keys_take_turns(bench: Bench) -> None:
    seen: list[str] = []

    @bench.queue.task(fair_key="tenant")
    def serve(tenant: str) -> None:
        seen.append(tenant)

    serve.submit_many([("large",)] * 4)
    serve.submit("small")
    bench.drain("now")

    assert "small" in seen[:2]


def test_a_unique_task_is_submitted_once(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task(unique=Unique())
    def rebuild(shop: int) -> None:
        seen.append(shop)

    handles = [rebuild.submit(shop) for shop in (1, 1, 2)]
    bench.drain("now")

    assert [handle.is_new for handle in handles] == [True, False, True]
    assert sorted(seen) == [1, 2]


def test_an_id_is_a_dedupe_key(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task
    def charge(order: int) -> None:
        seen.append(order)

    for _ in range(2):
        charge.options(id="order-7").submit(7)
        bench.drain("now")

    assert seen == [7]


def test_a_paused_queue_runs_nothing(bench: Bench) -> None:
    seen: list[int] = []

    @bench.queue.task
    def note() -> None:
        seen.append(1)

    note.submit()
    bench.queue.pause()
    bench.drain("now")
    while_paused = list(seen)
    bench.queue.resume()
    bench.drain("now")

    assert while_paused == []
    assert seen == [1]


def test_a_paused_task_lets_others_pass(bench: Bench) -> None:
    seen: list[str] = []

    @bench.queue.task
    def slow() -> None:
        seen.append("slow")

    @bench.queue.task
    def quick() -> None:
        seen.append("quick")

    bench.queue.pause(slow)
    slow.submit()
    quick.submit()
    bench.drain("now")
    while_paused = list(seen)
    bench.queue.resume(slow)
    bench.drain("now")

    assert while_paused == ["quick"]
    assert seen == ["quick", "slow"]


class Recorder(Middleware):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def submitted(self, call: TaskCall) -> None:
        self.seen.append(f"submitted {call.arguments}")

    def before(self, call: TaskCall, context: ExecutionContext) -> None:
        self.seen.append("before")

    def after(self, call: TaskCall, context: ExecutionContext, result: Any) -> None:
        self.seen.append(f"after {result}")


def test_hooks_see_a_task_come_and_go(make_bench: MakeBench) -> None:
    recorder = Recorder()
    bench = make_bench(middleware=[recorder])

    @bench.queue.task
    def double(number: int) -> int:
        return number * 2

    double.submit(2)
    bench.drain("now")

    assert recorder.seen == ["submitted {'number': 2}", "before", "after 4"]


class Database:
    def __init__(self) -> None:
        self.is_open = True


def test_resources_are_opened_for_a_task_and_closed(bench: Bench) -> None:
    opened: list[Database] = []

    @bench.queue.resource
    def database() -> Iterator[Database]:
        opened.append(Database())
        yield opened[-1]
        opened[-1].is_open = False

    @bench.queue.task
    def is_open(db: Annotated[Database, Resource] = INJECTED) -> bool:
        return db.is_open

    handle = is_open.submit()
    bench.drain("now")

    assert handle.result(5) is True
    assert [one.is_open for one in opened] == [False]


def test_progress_checkpoints_and_logs_are_kept(bench: Bench) -> None:
    @bench.queue.task(retries=1)
    def long(context: ExecutionContext) -> int:
        done = context.checkpoint or 0
        if not done:
            context.save(3)
            raise OSError("cut off")
        context.logger.info("went on")
        return int(done)

    handle = long.options(log=True).submit()
    bench.drain("all")

    assert handle.result(5) == 3
    assert "went on" in [record.message for record in handle.logs()]


def test_a_full_queue_refuses(make_bench: MakeBench) -> None:
    bench = make_bench(max_length=1)

    @bench.queue.task
    def note() -> None: ...

    note.submit()

    with pytest.raises(QueueFull):
        note.submit()


def test_ended_input_refuses(bench: Bench) -> None:
    @bench.queue.task
    def note() -> None: ...

    bench.queue.end_input()

    with pytest.raises(InputEnded):
        note.submit()


def test_a_signed_task_runs_and_a_forged_one_does_not(make_bench: MakeBench) -> None:
    bench = make_bench(secret="s3cret" * 6)

    @bench.queue.task(name="pay")
    def pay(amount: int) -> int:
        return amount

    with TaskQueue(bench.queue.name, bench.url, secret="forged" * 6) as forger:
        forged = forger.task(name="pay")(pay.__wrapped__).submit(5000)
    handle = pay.submit(5)
    bench.drain("now")

    assert handle.result(5) == 5
    with pytest.raises(BadSignature):
        bench.queue.handle(forged.id).result(5)


def test_tasks_are_counted_and_cancelled_in_bulk(bench: Bench) -> None:
    @bench.queue.task(name="bulky")
    def bulky(number: int) -> None: ...

    bulky.submit_many([(n,) for n in range(10)])

    assert bench.queue.count(task="bulky") == 10
    assert bench.queue.cancel_many(task="bulky").changed == 10
    assert bench.queue.counts().unfinished == 0
