"""A queue with shards is one queue to everybody who uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Any

import pytest
from redis import Redis

from workstealing import (
    AsyncTaskQueue,
    Limit,
    MemberResult,
    Middleware,
    TaskQueue,
    Unique,
    Worker,
    WorkStealer,
    chain,
    gather_results,
    group,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    ConfigurationError,
    InputEnded,
    QueueFull,
    RedisUnavailable,
    TaskNotFound,
)
from workstealing.queue.pause_calls import read_pauses
from workstealing.queue.placement import shard_in_id, shard_of_id, shard_of_key
from workstealing.queue.producer_calls import is_input_ended
from workstealing.queue.shard_calls import read_shards
from workstealing.queue.steps import Call
from workstealing.testing import Server, wait_until

SHARDS = 8
MakeQueue = Callable[..., TaskQueue]


@pytest.fixture
def queue(make_queue: MakeQueue) -> TaskQueue:
    return make_queue(shards=SHARDS)


@pytest.fixture
def client(redis_server: Server) -> Iterator[Any]:
    with Redis.from_url(redis_server.url) as client:
        yield client


def add_task(queue: TaskQueue, **options: Any) -> Any:
    @queue.task(name="add", **options)
    def add(a: int, b: int) -> int:
        return a + b

    return add


def lengths(queue: TaskQueue) -> list[int]:
    """Return how many tasks each shard has."""
    parts = internals_of(queue)
    return [parts.driver.client.hlen(keys.task) for keys in parts.shards.all]


# Where tasks are put.


def test_tasks_that_are_submitted_one_by_one_are_in_all_shards_alike(
    queue: TaskQueue,
) -> None:
    add = add_task(queue)

    handles = [add.submit(n, n) for n in range(2 * SHARDS)]

    assert lengths(queue) == [2] * SHARDS
    assert Counter(shard_in_id(one.id) for one in handles) == dict.fromkeys(
        range(SHARDS), 2
    )


def test_many_tasks_are_divided_and_few_go_together(queue: TaskQueue) -> None:
    add = add_task(queue)

    handles = add.submit_many([(n, n) for n in range(8_000)])
    assert lengths(queue) == [1000] * SHARDS
    assert len({one.id for one in handles}) == 8_000

    add.submit_many([(n, n) for n in range(50)])
    assert sorted(lengths(queue)) == [1000] * (SHARDS - 1) + [1050]


def test_results_of_many_come_in_the_order_in_which_they_were_submitted(
    queue: TaskQueue, crew: Any
) -> None:
    add = add_task(queue)
    handles = add.submit_many([(n, n) for n in range(900)])
    crew.start(queue)

    assert gather_results(handles, timeout=60) == [2 * n for n in range(900)]


def test_tasks_of_one_shard_key_are_in_one_shard(queue: TaskQueue) -> None:
    add = add_task(queue)
    keyed = add.options(shard_key="customer-7")

    handles = [keyed.submit(n, n) for n in range(20)]
    handles += keyed.submit_many([(n, n) for n in range(400)])

    expected = shard_of_key("customer-7", SHARDS)
    assert {shard_in_id(one.id) for one in handles} == {expected}
    with pytest.raises(ConfigurationError, match="shard_key"):
        add.options(shard_key=7)


def test_a_named_task_is_found_by_its_name_whatever_key_it_has(
    queue: TaskQueue, make_queue: MakeQueue, crew: Any
) -> None:
    add = add_task(queue)
    names = [f"order-{n}" for n in range(20)]
    for name in names[:10]:
        add.options(id=name).submit(1, 2)
    for name in names[10:]:
        add.options(id=name, shard_key="together").submit(1, 2)
    assert not add.options(id=names[0]).submit(1, 2).is_new

    elsewhere = make_queue(shards=SHARDS)
    for name in names:
        assert elsewhere.handle(name).state().state == "waiting"
    crew.start(queue)
    assert [elsewhere.handle(name).result(60) for name in names] == [3] * 20
    with pytest.raises(TaskNotFound):
        elsewhere.handle("nobody").result(5)


def test_a_queue_of_the_default_has_one_shard_and_the_keys_that_it_always_had(
    make_queue: MakeQueue, client: Any, key_prefix: str
) -> None:
    queue = make_queue()
    handle = add_task(queue).submit(1, 2)

    assert shard_in_id(handle.id) is None
    assert client.hexists(f"ws:{{{key_prefix}/default}}:task", handle.id)
    assert not client.hexists(f"ws:{{{key_prefix}/default}}:control", "shards")


@pytest.mark.parametrize("number", [0, -1, 257, 2.5, "8", None])
def test_a_number_of_shards_that_is_none_is_refused(number: Any) -> None:
    with pytest.raises(ConfigurationError, match="shards"):
        TaskQueue("q", "redis://localhost:1", shards=number)


def test_the_longest_queue_is_as_long_as_that_of_all_shards(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(shards=4, max_length=8)
    add = add_task(queue)
    for n in range(8):
        add.submit(n, n)

    with pytest.raises(QueueFull, match="max_length=8"):
        add.submit(0, 0)
    assert queue.counts().unfinished == 8


# One queue, whoever looks.


def test_a_full_queue_says_how_many_unique_tasks_it_took_in_all_shards(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(shards=4, max_length=8)
    add = add_task(queue, unique=Unique())

    with pytest.raises(QueueFull) as refusal:
        add.submit_many([(n, n) for n in range(40)])

    taken = queue.counts().unfinished
    assert f"so {taken} of 40 tasks were submitted" in str(refusal.value)


def test_counts_waits_pauses_and_the_end_of_input_are_those_of_all_shards(
    queue: TaskQueue, crew: Any
) -> None:
    add = add_task(queue)
    assert queue.pause()
    assert not queue.pause()
    handles = [add.submit(n, n) for n in range(SHARDS)]
    worker = crew.start(queue)
    queue.end_input()

    assert queue.counts().unfinished == SHARDS
    assert queue.counts().input_ended
    assert queue.paused().queue_since_ms is not None
    for _ in range(SHARDS):
        with pytest.raises(InputEnded):
            add.submit(0, 0)
    assert queue.resume()
    assert not queue.paused()
    queue.reopen_input()
    assert add.submit(20, 1).result(60) == 21
    assert queue.wait(60).stats["done"] == SHARDS + 1
    assert [one.result(60) for one in handles] == [2 * n for n in range(SHARDS)]
    assert not worker.stats.refused


def test_the_name_of_a_task_is_paused_in_all_shards(
    queue: TaskQueue, crew: Any
) -> None:
    add = add_task(queue)

    @queue.task(name="other")
    def other() -> str:
        return "ran"

    queue.pause(add)
    paused = [add.submit(n, n) for n in range(SHARDS)]
    free = [other.submit() for _ in range(SHARDS)]
    crew.start(queue)

    assert [one.result(60) for one in free] == ["ran"] * SHARDS
    assert {one.state().state for one in paused} == {"paused"}
    queue.resume(add)
    assert [one.result(60) for one in paused] == [2 * n for n in range(SHARDS)]


def test_a_unique_task_is_unique_in_all_shards(queue: TaskQueue) -> None:
    add = add_task(queue, unique=Unique())

    first = [add.submit(n, n) for n in range(20)]
    second = [add.submit(n, n) for n in range(20)]

    assert [one.id for one in first] == [one.id for one in second]
    assert not any(one.is_new for one in second)
    assert len(set(map(shard_in_id, (one.id for one in first)))) > 1


def test_a_limit_holds_for_the_whole_queue(queue: TaskQueue) -> None:
    add = add_task(queue, limit=Limit(concurrency=1))

    for n in range(5):
        add.options(id=f"named-{n}").submit(n, n)
        add.submit(n, n)

    assert lengths(queue) == [10] + [0] * (SHARDS - 1)
    assert queue.handle("named-3").state().state == "waiting"


def test_two_workers_run_one_task_of_a_limit_at_a_time(
    make_queue: MakeQueue, crew: Any
) -> None:
    guard, running, most = Lock(), [0], [0]
    queue = make_queue(shards=SHARDS)

    @queue.task(name="alone", limit=Limit(concurrency=1))
    def alone(number: int) -> int:
        with guard:
            running[0] += 1
            most[0] = max(most[0], running[0])
        # The other worker has the time to begin one, if it may.
        queue.counts()
        with guard:
            running[0] -= 1
        return number

    # Their homes are different shards, and neither needs to be the first.
    for index in (1, 2):
        crew.start(queue, pool="crew", index=index)
    handles = [alone.submit(n) for n in range(10)]

    assert [one.result(90) for one in handles] == list(range(10))
    assert most == [1]


def test_a_chain_and_a_group_are_in_one_shard_and_end(
    queue: TaskQueue, crew: Any
) -> None:
    add = add_task(queue)

    @queue.task(name="total")
    def total(numbers: list[MemberResult[int]]) -> int:
        return sum(one.value or 0 for one in numbers)

    crew.start(queue)
    chains = [chain(add.s(1, 2), add.s(b=10)).submit() for _ in range(SHARDS)]
    groups = [
        (group(add.s(n, n) for n in range(10)) | total.s()).submit()
        for _ in range(SHARDS)
    ]

    assert [one.result(60) for one in chains] == [13] * SHARDS
    assert [one.result(60) for one in groups] == [90] * SHARDS
    assert len({shard_in_id(one.id) for one in chains}) == SHARDS
    shards = {shard_in_id(step.id) for step in chains[0].steps}
    assert len(shards) == 1


def test_a_group_is_found_and_cancelled_by_its_id(queue: TaskQueue) -> None:
    add = add_task(queue)
    made = group(add.s(n, n) for n in range(10)).submit()

    found = queue.group_handle(made.id)

    assert len(found.members) == 10
    assert found.progress().left == 10
    assert found.cancel() == 10


def test_bulk_changes_reach_all_shards(queue: TaskQueue) -> None:
    add = add_task(queue)
    for n in range(3 * SHARDS):
        add.submit(n, n)

    assert queue.count(task="add") == 3 * SHARDS
    assert queue.cancel_many(task="add").changed == 3 * SHARDS
    assert queue.counts().unfinished == 0
    assert queue.purge(state="cancelled").changed == 3 * SHARDS


def test_dead_letters_of_any_shard_are_replayed_and_dropped(
    queue: TaskQueue, crew: Any
) -> None:
    @queue.task(name="fail", retries=0)
    def fail() -> None:
        raise ValueError("no")

    handles = [fail.submit() for _ in range(SHARDS)]
    crew.start(queue)
    wait_until(lambda: queue.counts().dead == SHARDS, 60, "all are dead")
    crew.stop()

    assert queue.replay(handles[0].id)
    assert queue.drop(handles[1].id)
    assert queue.replay_many().changed >= SHARDS - 2


def test_middlewares_are_told_of_tasks_in_all_shards(
    make_queue: MakeQueue, crew: Any
) -> None:
    told: list[str] = []

    class Told(Middleware):
        def submitted(self, call: Any) -> None:
            told.append(call.id)

    queue = make_queue(shards=SHARDS, middleware=[Told()])
    add = add_task(queue)
    handles = add.submit_many([(n, n) for n in range(1000)])
    crew.start(queue)
    gather_results(handles, timeout=60)

    assert sorted(told) == sorted(one.id for one in handles)


def test_a_log_a_checkpoint_and_a_cancellation_find_their_shard(
    queue: TaskQueue, crew: Any
) -> None:
    begun, go = Event(), Event()

    @queue.task(name="talk")
    def talk() -> str:
        print("hello")  # noqa: T201 - what is kept
        begun.set()
        assert go.wait(30)
        return "ended"

    worker = crew.start(queue)
    for _ in range(3):
        begun.clear()
        go.clear()
        handle = talk.options(log=True).submit()
        assert begun.wait(30)
        assert handle.state().state == "running"
        go.set()
        assert handle.result(30) == "ended"
        assert [one.message for one in handle.logs()] == ["hello"]
    assert worker.stats.failures == 0


async def test_an_asyncio_queue_has_the_same_shards(
    redis_server: Server, key_prefix: str, make_queue: MakeQueue, crew: Any
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url, shards=SHARDS)

    @queue.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    plain = make_queue(shards=SHARDS)
    add_task(plain)
    crew.start(plain)
    try:
        handles = [await add.submit(n, n) for n in range(SHARDS)]
        assert [await one.result(60) for one in handles] == [
            2 * n for n in range(SHARDS)
        ]
        assert len({shard_in_id(one.id) for one in handles}) == SHARDS
        assert (await queue.wait(60)).stats["done"] == SHARDS
    finally:
        await queue.close()


# Shards that are added.


def test_shards_are_added_and_what_was_there_is_found_and_known(
    make_queue: MakeQueue, crew: Any
) -> None:
    before = make_queue()
    add = add_task(before)
    drawn = [add.submit(n, n) for n in range(10)]
    for n in range(20):
        add.options(id=f"order-{n}").submit(n, n)

    after = make_queue(shards=4)
    more = add_task(after)
    again = [more.options(id=f"order-{n}").submit(n, n) for n in range(20)]
    assert not any(one.is_new for one in again)
    for n in range(20, 40):
        more.options(id=f"order-{n}").submit(n, n)

    last = make_queue(shards=SHARDS)
    newest = add_task(last)
    again = [newest.options(id=f"order-{n}").submit(n, n) for n in range(40)]
    assert not any(one.is_new for one in again)
    assert last.counts().unfinished == 50
    crew.start(last)
    assert [last.handle(one.id).result(60) for one in drawn] == [
        2 * n for n in range(10)
    ]
    assert [last.handle(f"order-{n}").result(60) for n in range(40)] == [
        2 * n for n in range(40)
    ]
    numbers = internals_of(last).driver.call(read_shards(internals_of(last).keys))
    assert numbers == (1, 4, SHARDS)


def test_a_named_task_with_a_shard_key_is_known_after_shards_were_added(
    make_queue: MakeQueue,
) -> None:
    names = [f"order-{n}" for n in range(40)]

    def submit(queue: TaskQueue) -> list[bool]:
        add = add_task(queue)
        return [
            add.options(id=name, shard_key=f"customer-{n % 20}").submit(n, n).is_new
            for n, name in enumerate(names)
        ]

    assert submit(make_queue()) == [True] * 40
    assert submit(make_queue(shards=3)) == [False] * 40
    last = make_queue(shards=SHARDS)
    assert submit(last) == [False] * 40
    again = make_queue(shards=SHARDS)
    keyed = add_task(again).options(shard_key="customer-1")
    many = keyed.submit_many([(n, n) for n in range(40)], ids=names)
    assert not any(one.is_new for one in many)
    assert again.counts().unfinished == 40


def test_a_task_that_was_named_only_is_known_by_its_name_after_shards_were_added(
    make_queue: MakeQueue,
) -> None:
    names = [f"order-{n}" for n in range(20)]
    before = add_task(make_queue(shards=2))
    for n, name in enumerate(names):
        before.options(id=name).submit(n, n)

    after = make_queue(shards=SHARDS)
    add = add_task(after)
    keyed = [add.options(id=name, shard_key="any").submit(1, 2) for name in names]
    assert not any(one.is_new for one in keyed)
    limited = make_queue(shards=SHARDS)
    limited.counts()
    add = add_task(limited, limit=Limit(concurrency=1))
    assert not any(add.options(id=name).submit(1, 2).is_new for name in names)
    assert after.counts().unfinished == 20


def test_a_named_unique_task_that_has_ended_is_known_after_shards_were_added(
    make_queue: MakeQueue,
) -> None:
    before = make_queue(shards=2)
    add = add_task(before, unique=Unique())
    for n in range(20):
        add.options(id=f"order-{n}").submit(n, n)
    Worker(before).run(until_empty=True)
    # Their keys are free again, and their ids are known.
    assert not add.options(id="order-3").submit(3, 3).is_new

    more = add_task(make_queue(shards=SHARDS), unique=Unique())

    again = [more.options(id=f"order-{n}").submit(n, n) for n in range(20)]
    assert not any(one.is_new for one in again)


def test_an_id_that_looks_drawn_belongs_to_the_shard_that_it_names(
    make_queue: MakeQueue, queue: TaskQueue
) -> None:
    add = add_task(queue)
    own = "3.abcdefghijkl"

    handle = add.options(id=own, shard_key="customer-7").submit(1, 2)

    assert shard_of_key("customer-7", SHARDS) != 3
    assert lengths(queue)[3] == 1
    assert handle.state().state == "waiting"
    assert not add.options(id=own).submit(1, 2).is_new
    # What replicas did not confirm is submitted again by its id and with its key, which
    # may be that of another shard by then.
    drawn = add.options(shard_key="customer-7").submit(1, 2)
    more = add_task(make_queue(shards=8 * SHARDS))
    keys = [f"customer-{n}" for n in range(8)]
    again = [more.options(id=drawn.id, shard_key=key).submit(1, 2) for key in keys]
    assert not any(one.is_new for one in again)


@pytest.mark.parametrize(
    "options", [{"limit": Limit(concurrency=1)}, {"unique": Unique()}]
)
def test_an_id_that_names_another_shard_than_its_task_is_for_is_refused(
    queue: TaskQueue, options: dict[str, Any]
) -> None:
    add = add_task(queue, **options)
    home = 0 if "limit" in options else shard_in_id(add.submit(1, 2).id)
    assert home is not None

    with pytest.raises(ConfigurationError, match="looks like one that was drawn"):
        add.options(id=f"{(home + 1) % SHARDS}.abcdefghijkl").submit(1, 2)

    add.options(id=f"{home}.abcdefghijkl").submit(1, 2)
    # There is no such shard, so it is looked for everywhere.
    add.options(id="99.abcdefghijkl").submit(3, 4)
    assert queue.handle("99.abcdefghijkl").state().state == "waiting"


def test_a_unique_key_that_was_taken_before_shards_were_added_stays_taken(
    make_queue: MakeQueue,
) -> None:
    add = add_task(make_queue(shards=2), unique=Unique())
    first = [add.submit(n, n) for n in range(20)]

    more = add_task(make_queue(shards=SHARDS), unique=Unique())

    assert [more.submit(n, n).id for n in range(20)] == [one.id for one in first]


def test_a_smaller_number_of_shards_does_not_count(
    make_queue: MakeQueue, queue: TaskQueue
) -> None:
    add_task(queue).submit(1, 2)
    fewer, one = make_queue(shards=2), make_queue()

    assert fewer.counts().unfinished == one.counts().unfinished == 1
    assert len(internals_of(fewer).shards.all) == SHARDS
    add = add_task(fewer)
    handles = [add.submit(n, n) for n in range(SHARDS)]
    assert len({shard_in_id(task.id) for task in handles}) == SHARDS
    assert one.handle(handles[-1].id).state().state == "waiting"


def test_shards_that_are_added_to_a_paused_queue_are_paused(
    make_queue: MakeQueue,
) -> None:
    before = make_queue(shards=2)
    before.pause()
    before.pause("add")
    before.end_input()
    after = make_queue(shards=SHARDS)

    add = add_task(after)
    for _ in range(SHARDS):
        with pytest.raises(InputEnded):
            add.submit(1, 2)
    assert after.counts().unfinished == 0
    after.reopen_input()
    handle = add.options(shard_key="any").submit(1, 2)
    assert handle.state().state == "paused"


def test_shards_that_were_paused_before_they_counted_are_resumed_if_need_be(
    make_queue: MakeQueue,
) -> None:
    before = make_queue(shards=2)
    before.counts()
    before.pause()
    before.pause("add")
    before.pause("other")
    before.end_input()
    failing = internals_of(make_queue(shards=SHARDS))
    flow = failing.shards.known()
    step: Any = next(flow)
    while not (isinstance(step, Call) and step.script.name == "declare_shards"):
        step = flow.send(failing.driver.call(step))
    with pytest.raises(StopIteration):
        flow.throw(RedisUnavailable("just now"))
    before.resume()
    before.resume("add")
    before.reopen_input()

    parts = internals_of(make_queue(shards=SHARDS))
    shards = parts.driver.run(parts.shards.known())

    pauses = [parts.driver.call(read_pauses(keys)) for keys in shards]
    assert [one.queue_since_ms for one in pauses] == [None] * SHARDS
    assert [[*one.tasks] for one in pauses] == [["other"]] * SHARDS
    ended = [parts.driver.call(is_input_ended(keys)) for keys in shards]
    assert ended == [False] * SHARDS


# Workers.


def test_one_worker_serves_all_shards(queue: TaskQueue, crew: Any) -> None:
    add = add_task(queue)
    handles = [add.submit(n, n) for n in range(3 * SHARDS)]

    crew.start(queue)

    assert [one.result(60) for one in handles] == [2 * n for n in range(3 * SHARDS)]


@pytest.mark.parametrize("shards", [1, SHARDS])
def test_workers_have_one_blocked_connection_each_however_many_shards_there_are(
    make_queue: MakeQueue, crew: Any, client: Any, shards: int
) -> None:
    workers = 3
    queue = make_queue(shards=shards)
    add = add_task(queue)

    def blocked() -> int:
        return sum("b" in one["flags"] for one in client.client_list())

    wait_until(lambda: blocked() == 0, 60, "workers of other tests to be gone")
    for index in range(workers):
        crew.start(queue, pool="crew", index=index)
    seen = set[int]()
    for n in range(2 * SHARDS):
        assert add.submit(n, n).result(60) == 2 * n
        seen.add(blocked())
    wait_until(lambda: blocked() == workers, 60, "all workers to wait")
    assert max(seen) <= workers


def test_a_worker_that_ends_when_empty_has_emptied_all_shards(
    queue: TaskQueue,
) -> None:
    add = add_task(queue)
    for n in range(3 * SHARDS):
        add.submit(n, n)

    @queue.task(name="more")
    def more(left: int) -> None:
        if left:
            more.submit(left - 1)

    more.submit(3 * SHARDS)
    Worker(queue).run(until_empty=True)

    counted = queue.counts()
    assert counted.unfinished == 0
    assert counted.stats["done"] == 6 * SHARDS + 1
    assert counted.leases == {}


def test_workers_that_start_have_homes_of_their_own(
    queue: TaskQueue, crew: Any
) -> None:
    add_task(queue)
    for index in range(SHARDS):
        crew.start(queue, pool="crew", index=index)

    parts = internals_of(queue)

    def members() -> list[int]:
        return [parts.driver.client.zcard(keys.workers) for keys in parts.shards.all]

    wait_until(lambda: members() == [1] * SHARDS, 60, "one worker in each shard")


def test_tasks_that_were_parked_in_any_shard_are_run_by_who_knows_them(
    make_queue: MakeQueue,
) -> None:
    former, newer = make_queue(shards=SHARDS), make_queue(shards=SHARDS)
    add_task(former)
    add = add_task(newer, version=2)
    for n in range(SHARDS):
        add.submit(n, n)
    # A worker of the former release takes them all, and cannot run one.
    Worker(former).run(until_empty=True)
    assert former.counts().parked == SHARDS

    Worker(newer).run(until_empty=True)

    counted = newer.counts()
    assert (counted.parked, counted.stats["done"]) == (0, SHARDS)


def test_workers_that_know_different_tasks_share_the_shards(
    make_queue: MakeQueue, crew: Any
) -> None:
    draws, sends = make_queue(shards=SHARDS), make_queue(shards=SHARDS)

    @draws.task(name="draw")
    def draw() -> str:
        return "drawn"

    @sends.task(name="send")
    def send() -> str:
        return "sent"

    crew.start(draws, pool="draws", index=0)
    crew.start(draws, pool="draws", index=1)
    crew.start(sends, pool="sends", index=0)
    drawn = [draw.submit() for _ in range(2 * SHARDS)]
    sent = [send.submit() for _ in range(2 * SHARDS)]

    assert [one.result(90) for one in drawn] == ["drawn"] * 2 * SHARDS
    assert [one.result(90) for one in sent] == ["sent"] * 2 * SHARDS


def test_a_worker_that_was_told_of_one_shard_learns_of_all(
    make_queue: MakeQueue, queue: TaskQueue, crew: Any
) -> None:
    add = add_task(queue)
    handles = [add.submit(n, n) for n in range(SHARDS)]
    one = make_queue()
    add_task(one)

    crew.start(one)

    assert [task.result(60) for task in handles] == [2 * n for n in range(SHARDS)]


def test_a_delayed_task_in_a_shard_without_workers_is_run(
    queue: TaskQueue, crew: Any
) -> None:
    add = add_task(queue)
    crew.start(queue)

    handles = [add.options(delay=0.2).submit(n, n) for n in range(SHARDS)]

    assert [one.result(60) for one in handles] == [2 * n for n in range(SHARDS)]


def test_a_schedule_fires_wherever_workers_are(queue: TaskQueue, crew: Any) -> None:
    ran = Event()

    @queue.task(name="tick")
    def tick() -> None:
        ran.set()

    queue.schedule(tick, every=1.0, name="ticking")
    crew.start(queue, pool="a", index=3)

    assert ran.wait(30)


def test_side_work_keeps_up_all_shards(queue: TaskQueue) -> None:
    add = add_task(queue)
    for n in range(SHARDS):
        add.options(delay=0.001).submit(n, n)
    stealer = WorkStealer(queue)

    for _ in range(3 * SHARDS):
        stealer.recruited()

    assert queue.counts().delayed == 0
    assert queue.counts().unfinished == SHARDS
    stealer.close()


def test_a_named_id_is_where_the_placement_says(queue: TaskQueue) -> None:
    handle = add_task(queue).options(id="order-17").submit(1, 2)

    shard = shard_of_id("order-17", SHARDS)
    assert lengths(queue)[shard] == 1
    assert handle.cancel() == "cancelled"
