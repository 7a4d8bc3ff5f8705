"""Servers restart, hang and forget, replies get lost: promises 7 and 9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import RedisOutOfMemory, RedisUnavailable
from workstealing.queue.minute_calls import TENS_KEPT
from workstealing.queue.scripts import load_script
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.outcome import State
from workstealing.tasks.retry import RetryPolicy
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]


class Local:
    """Workers in threads of this process, where their counts can be seen."""

    def __init__(self) -> None:
        self._at_work: list[tuple[Worker, Thread]] = []

    def start(self, queue: TaskQueue, **options: Any) -> Worker:
        worker = Worker(queue, **options)
        thread = Thread(target=worker.run)
        self._at_work.append((worker, thread))
        thread.start()
        return worker

    def end(self) -> None:
        for worker, _ in self._at_work:
            worker.stop()
        for _, thread in self._at_work:
            thread.join(timeout=20)
            assert not thread.is_alive()


@pytest.fixture
def threads() -> Iterator[Local]:
    local = Local()
    yield local
    local.end()


def sent(script: str) -> Callable[[bytes], bool]:
    """Tell whether a request runs a script."""
    sha = load_script("workstealing.queue", script).sha.encode()
    return lambda request: sha in request


def every(number: int, condition: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """Tell whether a request is the third, sixth, … of its kind, for 3."""
    seen = 0

    def is_one(request: bytes) -> bool:
        nonlocal seen
        seen += condition(request)
        return condition(request) and seen % number == 0

    return is_one


def assert_all_done_once(story: Any, number: int, *, repeated: int) -> None:
    runs = Counter(story.runs())
    counts = story.queue.counts()
    assert set(runs) == set(range(number))
    assert sum(runs.values()) <= number + repeated
    assert counts.stats["done"] == counts.outcomes == number
    assert counts.tasks == counts.assigned == 0


def test_promise_9_a_server_restarts_and_workers_go_on_by_themselves(
    tcp_server: Server, redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(tcp_server, notes=redis_server, lease=10.0)
    story.pause.submit_many([(n, 0.001) for n in range(800)])
    processes.start(story)
    processes.start(story)
    wait_until(lambda: len(story.runs()) > 200, 20, "some to be done")
    tcp_server.restart()
    internals_of(story.queue).driver.client.close()
    story.queue.wait(timeout=30)

    # Nobody died, so nothing is done again: outcomes are reported late.
    assert_all_done_once(story, 800, repeated=0)


def test_promise_9_a_server_that_is_killed_loses_nothing(
    tcp_server: Server, redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(tcp_server, notes=redis_server, lease=10.0)
    story.pause.submit_many([(n, 0.001) for n in range(500)])
    processes.start(story)
    wait_until(lambda: len(story.runs()) > 100, 20, "some to be done")
    tcp_server.kill()
    tcp_server.start()
    internals_of(story.queue).driver.client.close()
    story.queue.wait(timeout=30)

    assert_all_done_once(story, 500, repeated=0)


def test_promise_9_scripts_are_forgotten_under_load(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    story.pause.submit_many([(n, 0.0005) for n in range(600)])
    processes.start(story)
    processes.start(story)

    def flush() -> bool:
        story.sound.script_flush()
        return bool(story.queue.counts().unfinished == 0)

    wait_until(flush, 30, "all to be done")
    assert_all_done_once(story, 600, repeated=0)


def test_promise_9_connections_are_killed_under_load(
    tcp_server: Server, redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(tcp_server, notes=redis_server, lease=10.0)
    story.pause.submit_many([(n, 0.001) for n in range(600)])
    processes.start(story)
    processes.start(story)
    with Redis.from_url(tcp_server.url) as killer:
        for number in range(100, 500, 50):
            wait_until(lambda most=number: len(story.runs()) > most, 20, "progress")
            killer.client_kill_filter(_type="normal", skipme=True)
    internals_of(story.queue).driver.client.close()
    story.queue.wait(timeout=30)

    assert_all_done_once(story, 600, repeated=0)


def test_promise_9_replies_to_exchanges_are_lost(
    tcp_server: Server,
    redis_server: Server,
    make_story: Make,
    make_proxy: Make,
    processes: Any,
) -> None:
    proxy = make_proxy(tcp_server)
    story = make_story(tcp_server, proxy.url, redis_server, lease=10.0)
    story.pause.submit_many([(n, 0.001) for n in range(400)])
    proxy.cut_reply_if(every(3, sent("exchange")))
    processes.start(story)
    processes.start(story)
    wait_until(lambda: proxy.cuts >= 6, 30, "replies to be lost")
    proxy.cut_reply_if(None)
    story.queue.wait(timeout=30)

    assert_all_done_once(story, 400, repeated=0)


def test_promise_9_a_client_that_repeats_commands_by_itself_strands_no_task(
    tcp_server: Server, make_proxy: Make, key_prefix: str, threads: Local
) -> None:
    """redis-py sends a command again, and nobody is told that a reply was lost."""
    proxy = make_proxy(tcp_server)
    # Before redis-py 6 it does so only for errors that are named.
    repeating = Redis.from_url(
        proxy.url, retry=Retry(NoBackoff(), 3), retry_on_error=[NotConnected]
    )
    with repeating as client:
        queue = TaskQueue(key_prefix, client)
        runs: Counter[int] = Counter()

        @queue.task
        def note(number: int) -> None:
            runs[number] += 1

        note.submit_many([(n,) for n in range(200)])
        proxy.cut_reply_if(every(3, sent("exchange")))
        worker = threads.start(queue)
        wait_until(lambda: proxy.cuts >= 2, 20, "replies to be lost")
        proxy.cut_reply_if(None)
        queue.wait(timeout=20)

        assert worker.stats.failures == 0
        assert set(runs.values()) == {1}
        assert len(runs) == 200
        threads.end()


def test_promise_9_a_submission_whose_reply_is_lost_can_be_repeated(
    tcp_server: Server, make_story: Make, make_proxy: Make, processes: Any
) -> None:
    proxy = make_proxy(tcp_server)
    story = make_story(tcp_server, proxy.url)
    story.note.submit(0)
    proxy.cut_reply_if(sent("submit"))
    with pytest.raises(RedisUnavailable):
        story.note.options(id="one").submit(1)
    with pytest.raises(RedisUnavailable):
        story.note.submit_many([(2,), (3,)], ids=["two", "three"])
    proxy.cut_reply_if(None)
    one = story.note.options(id="one").submit(1)
    story.note.submit_many([(2,), (3,)], ids=["two", "three"])
    processes.start(story)

    assert one.result(timeout=10) == 1
    story.queue.wait(timeout=10)
    assert_all_done_once(story, 4, repeated=0)


def test_promise_9_all_connections_are_cut_again_and_again(
    tcp_server: Server,
    redis_server: Server,
    make_story: Make,
    make_proxy: Make,
    processes: Any,
) -> None:
    proxy = make_proxy(tcp_server)
    story = make_story(tcp_server, proxy.url, redis_server, lease=10.0)
    story.pause.submit_many([(n, 0.001) for n in range(400)])
    processes.start(story)
    for number in range(50, 300, 50):
        wait_until(lambda most=number: len(story.runs()) > most, 20, "progress")
        proxy.cut_all()
    story.queue.wait(timeout=30)

    assert_all_done_once(story, 400, repeated=0)


def test_promise_9_an_idle_worker_is_back_at_work_when_a_hanging_server_answers(
    tcp_server: Server, key_prefix: str, threads: Local
) -> None:
    queue = TaskQueue(key_prefix, f"{tcp_server.url}?socket_timeout=0.2", lease=0.5)

    @queue.task
    def one() -> int:
        return 1

    worker = threads.start(queue)
    wait_until(lambda: worker.stats.exchanges > 2, 10, "it to be idle")
    tcp_server.pause()
    wait_until(lambda: worker.stats.failures >= 3, 20, "it to notice")
    tcp_server.resume()

    assert one.submit().result(timeout=20) == 1
    threads.end()


def test_promise_9_a_server_hangs_for_longer_than_the_lease_of_a_busy_worker(
    tcp_server: Server, key_prefix: str, threads: Local
) -> None:
    queue = TaskQueue(key_prefix, f"{tcp_server.url}?socket_timeout=0.2", lease=0.5)
    runs: Counter[int] = Counter()

    @queue.task
    def note(number: int) -> int:
        runs[number] += 1
        return number

    handles = note.submit_many([(n,) for n in range(20_000)])
    worker = threads.start(queue)
    wait_until(lambda: len(runs) > 500, 20, "some to be done")
    tcp_server.pause()
    wait_until(lambda: worker.stats.failures >= 3, 20, "it to notice")
    tcp_server.resume()
    wait_until(lambda: len(runs) == 20_000, 30, "all to be run")
    counts = queue.wait(timeout=20)

    assert counts.stats["done"] == counts.outcomes == 20_000
    assert handles[-1].result(timeout=5) == 19_999
    threads.end()


def test_promise_9_a_task_learns_that_redis_is_away_for_longer_than_its_lease(
    tcp_server: Server, key_prefix: str, threads: Local
) -> None:
    queue = TaskQueue(key_prefix, f"{tcp_server.url}?socket_timeout=0.2", lease=0.5)
    seen: list[bool] = []

    @queue.task
    def careful(context: ExecutionContext) -> int:
        seen.append(context.lease_lost)
        if len(seen) == 1:
            tcp_server.pause()
            wait_until(lambda: context.lease_lost, 20, "it to be told")
            seen.append(context.lease_lost)
            tcp_server.resume()
            context.check()
        return len(seen)

    handle = careful.submit()
    threads.start(queue)

    # It stopped, for another might be at it; and it is not forgotten.
    assert handle.result(timeout=20) == 3
    assert seen == [False, True, False]
    threads.end()


def test_a_full_server_refuses_input_and_what_it_has_is_still_done(
    tcp_server: Server, key_prefix: str, threads: Local
) -> None:
    queue = TaskQueue(key_prefix, tcp_server.url)

    @queue.task
    def note(number: int) -> int:
        return number

    handles = note.submit_many([(n,) for n in range(50)])
    with Redis.from_url(tcp_server.url) as admin:
        admin.config_set("maxmemory", 1)
        with pytest.raises(RedisOutOfMemory):
            note.submit(1)
        worker = threads.start(queue)

        # It stays full meanwhile: results of a few bytes need no room.
        assert [one.result(timeout=20) for one in handles] == list(range(50))
        assert queue.counts().tasks == 0
        threads.end()
        assert worker.stats.failures == 0


def test_a_task_that_outlasts_the_lease_runs_once_though_the_server_is_full(
    tcp_server: Server, key_prefix: str, threads: Local
) -> None:
    runs: list[int] = []
    is_over = Event()
    queue = TaskQueue(key_prefix, tcp_server.url, lease=1.5)

    @queue.task
    def hold(number: int) -> int:
        runs.append(number)
        is_over.wait(60)
        return number

    handle = hold.submit(7)
    workers = [threads.start(queue) for _ in range(2)]
    wait_until(lambda: runs, 20, "it to run")
    with Redis.from_url(tcp_server.url) as admin:

        def now() -> float:
            seconds, microseconds = admin.time()
            return float(seconds + microseconds / 1e6)

        admin.config_set("maxmemory", 1)
        since = now()
        wait_until(lambda: now() > since + 4, 30, "two leases to be over")
        is_over.set()

        assert handle.result(timeout=20) == 7
        threads.end()
        assert runs == [7]
        assert [worker.stats.failures for worker in workers] == [0, 0]


def turn_read_only(admin: Redis) -> Callable[[], object]:
    admin.execute_command("REPLICAOF", "127.0.0.1", 1)
    return lambda: admin.execute_command("REPLICAOF", "NO", "ONE")


def fill(admin: Redis) -> Callable[[], object]:
    admin.config_set("maxmemory", 1)
    return lambda: admin.config_set("maxmemory", 0)


@pytest.mark.parametrize("fail", [turn_read_only, fill])
def test_what_ends_while_the_server_takes_no_writes_is_settled_once(
    tcp_server: Server,
    key_prefix: str,
    threads: Local,
    fail: Callable[[Redis], Callable[[], object]],
) -> None:
    runs: list[int] = []
    is_over = Event()
    queue = TaskQueue(key_prefix, tcp_server.url)

    @queue.task
    def hold(number: int) -> str:
        runs.append(number)
        is_over.wait(30)
        return "x" * 100_000

    handles = hold.submit_many([(n,) for n in range(3)])
    worker = threads.start(queue)
    wait_until(lambda: runs, 20, "a task to run")
    with Redis.from_url(tcp_server.url) as admin:
        mend = fail(admin)
        is_over.set()
        wait_until(
            lambda: worker.stats.failures >= 2 or queue.counts().outcomes == 3,
            20,
            "it to be settled, or refused",
        )
        mend()

    assert [len(handle.result(timeout=20)) for handle in handles] == [100_000] * 3
    assert sorted(runs) == [0, 1, 2]
    assert queue.counts().stats["done"] == 3
    threads.end()


def test_promise_9_a_worker_behind_a_black_hole_comes_back_by_itself(
    redis_server: Server,
    tcp_server: Server,
    make_story: Make,
    make_proxy: Make,
    threads: Local,
) -> None:
    proxy = make_proxy(tcp_server)
    story = make_story(tcp_server, notes=redis_server)
    cut_off = make_story(tcp_server, f"{proxy.url}?socket_timeout=0.5", redis_server)
    story.pause.submit_many([(n, 0.005) for n in range(300)])
    worker = threads.start(cut_off.queue)
    wait_until(lambda: len(story.runs()) > 20, 20, "it to work")

    # For longer than its lease, so that others may have its tasks.
    proxy.swallow(True)
    wait_until(lambda: worker.stats.failures >= 3, 30, "it to notice")
    proxy.swallow(False)
    story.queue.wait(timeout=40)

    assert_all_done_once(story, 300, repeated=101)
    threads.end()


def test_promise_7_when_all_is_done_only_bounded_keys_are_left(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server, lease=0.3)
    queue, client = story.queue, story.sound
    soon = RetryPolicy(retries=1, initial_delay=0.01, max_delay=0.01)

    @queue.task(name="fail", retries=soon)
    def fail() -> None:
        raise ValueError

    story.note.submit_many([(n,) for n in range(500)])
    waiting = story.hold.submit(1000)
    victim = processes.start(story)
    wait_until(lambda: waiting.state().state is State.RUNNING, 10, "it to be held")
    story.note.submit_many([(n,) for n in range(500, 900)])
    processes.start(story)
    victim.kill()
    waiting.cancel()
    failed, delayed = fail.submit(), story.note.submit_in(3600, 901)
    delayed.cancel()
    story.note.submit_in(0.05, 900)
    story.sound.set(story.key("go"), 1)
    wait_until(lambda: queue.counts().parked == 1, 20, "the unknown to be parked")

    def is_given_up() -> bool:
        # The others may be quicker, and park it again.
        Worker(queue).run(until_empty=True)
        return bool(queue.counts().dead)

    wait_until(is_given_up, 20, "it to be given up")
    with pytest.raises(Exception, match="ValueError"):
        failed.result(timeout=10)
    assert queue.drop(failed.id)
    processes.end()
    wait_until(lambda: not queue.counts().leases, 10, "all to leave")

    prefix = internals_of(queue).keys.prefix
    left = {key.decode().removeprefix(prefix) for key in client.keys(f"{prefix}*")}
    kept = {
        "done",
        "biographies",
        "outcome_times",
        "stats",
        "control",
        "upkeep",
        "bell",
        "parked_abilities",
        "releases",
        "thefts",
    }
    minutes = {key for key in left if "_minutes:" in key}
    assert left - minutes <= kept
    for minute in minutes:
        assert 0 < client.pttl(prefix + minute) <= TENS_KEPT * 600_000
        assert client.hlen(prefix + minute) <= 30
    assert client.llen(internals_of(queue).keys.bell) <= 16
    assert client.xlen(internals_of(queue).keys.releases) <= 50
    assert client.xlen(internals_of(queue).keys.thefts) <= 200
    assert client.hlen(internals_of(queue).keys.done) == client.llen(
        internals_of(queue).keys.outcome_times
    )
    assert client.hlen(internals_of(queue).keys.stats) < 20
    assert client.hlen(internals_of(queue).keys.upkeep) < 12
    assert client.hlen(internals_of(queue).keys.control) < 4
