"""Old and new releases side by side, and tasks whose workers die in the middle."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from workstealing.client.queue_internals import internals_of
from workstealing.client.task_log import LoggingChannel
from workstealing.errors import TaskDead
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

CHILD = Path(__file__).parent / "release.py"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def releases(redis_server: Server, key_prefix: str) -> Iterator[dict[int, Any]]:
    """The queue as the old and as the new release see it."""
    spec = importlib.util.spec_from_file_location("faults_release", CHILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    both = {
        number: module.Release(key_prefix, redis_server.url, 1.0, number)
        for number in (1, 2)
    }
    yield both
    for release in both.values():
        release.close()


@pytest.fixture
def start(releases: dict[int, Any]) -> Iterator[Start]:
    """Start a worker of a release, and wait until it has joined."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(release: int, pool: str) -> subprocess.Popen[bytes]:
        story = releases[release]
        arguments = (story.name, story.url, str(story.lease), str(release), pool)
        process = subprocess.Popen(
            [sys.executable, str(CHILD), *arguments],
            env={**os.environ, "PYTHONPATH": str(CHILD.parents[2])},
            stdout=subprocess.DEVNULL,
        )
        started.append(process)
        is_there = lambda: f"{pool}.0" in story.queue.counts().leases  # noqa: E731
        wait_until(is_there, 20, "a worker to join")
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.terminate()
    for process in started:
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Load:
    """Tasks of both versions, submitted until it is stopped."""

    def __init__(self, releases: dict[int, Any]) -> None:
        self._releases = releases
        self._stopping = Event()
        self._thread = Thread(target=self._submit)
        self.wanted: dict[str, tuple[str, ...]] = {}

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _submit(self) -> None:
        old, new = self._releases[1], self._releases[2]
        number = 0
        while not self._stopping.wait(0.05):
            batch = range(number, number + 4)
            number += 4
            scaled_1 = old.scale.submit_many([(n, 3) for n in batch])
            scaled_2 = new.scale.submit_many([(n, (3, 2)) for n in batch])
            drawn_1 = old.draw.submit_many([(n,) for n in batch])
            drawn_2 = new.draw.submit_many([(n, "red") for n in batch])
            for n, *four in zip(
                batch, scaled_1, scaled_2, drawn_1, drawn_2, strict=True
            ):
                either = (f"release 1: {n} times 3", f"release 2: {n} times 3/1")
                for handle, wanted in zip(
                    four,
                    (
                        either,
                        (f"release 2: {n} times 3/2",),
                        (f"release 1: {n}",),
                        (f"release 2: {n} in red",),
                    ),
                    strict=True,
                ):
                    self.wanted[handle.id] = wanted


@pytest.mark.timeout(120)
def test_a_rolling_upgrade_and_back_under_load_loses_and_fails_nothing(
    releases: dict[int, Any], start: Start
) -> None:
    queue = releases[2].queue

    def some_more_are_done() -> None:
        before = queue.counts().stats.get("done", 0)
        wait_until(
            lambda: queue.counts().stats.get("done", 0) > before + 100, 20, "some more"
        )

    with Load(releases) as load:
        old = [start(1, "old-a"), start(1, "old-b")]
        some_more_are_done()
        new = [start(2, "new-a")]
        some_more_are_done()
        old[0].kill()
        new.append(start(2, "new-b"))
        some_more_are_done()
        # Back again: the new ones go, one of them with a bang, and old ones come.
        start(1, "old-c")
        new[0].kill()
        some_more_are_done()
        new[1].terminate()
        new[1].wait(15)
        old[1].terminate()
        start(2, "new-c")
        some_more_are_done()
    queue.wait(timeout=60)

    results = {
        task_id: queue.handle(task_id).result(timeout=20) for task_id in load.wanted
    }
    wrong = {
        task_id: result
        for task_id, result in results.items()
        if result not in load.wanted[task_id]
    }
    assert wrong == {}
    counts = queue.counts()
    assert counts.stats["done"] == len(load.wanted)
    assert (counts.dead, counts.parked) == (0, 0)
    assert counts.stats["routed"] > 0


def test_a_task_that_only_another_worker_knows_is_run_there_without_a_wait(
    releases: dict[int, Any], start: Start
) -> None:
    start(1, "old")
    start(2, "new")
    handles = [releases[2].draw.submit(n, "blue") for n in range(20)]

    results = [handle.result(timeout=20) for handle in handles]

    assert results == [f"release 2: {n} in blue" for n in range(20)]
    # Upkeep would have taken them up again, two seconds later.
    assert "unpark" not in releases[1].queue.counts().upkeep


def test_what_no_worker_knows_is_parked_and_taken_up_by_the_first_that_does(
    releases: dict[int, Any], start: Start
) -> None:
    start(1, "old")
    handle = releases[2].draw.submit(1, "red")
    wait_until(lambda: handle.state().state is State.PARKED, 10, "it to be parked")
    assert "draw@2" in str(handle.state())

    start(2, "new")

    assert handle.result(timeout=10) == "release 2: 1 in red"


@pytest.mark.timeout(90)
def test_limits_of_a_new_release_hold_among_workers_that_do_not_know_them(
    releases: dict[int, Any], start: Start
) -> None:
    old, new = releases[1], releases[2]
    limited = new.call.submit_many([(n, 2) for n in range(40)])
    free = old.call.submit_many([(n, 1) for n in range(40, 60)])
    victim = start(1, "old-a")
    start(1, "old-b")
    start(2, "new")

    def calls() -> list[list[str]]:
        lines = new.notes.lrange(new.key("calls"), 0, -1)
        return [line.decode().split() for line in lines]

    wait_until(
        lambda: any(one[1] == str(victim.pid) and one[2] == "2" for one in calls()),
        20,
        "an old worker to run a limited task",
    )
    victim.kill()
    victim.wait()
    new.notes.rpush(new.key("calls"), f"killed {victim.pid} 2 0")
    new.queue.wait(timeout=60)

    results = [handle.result(timeout=20) for handle in (*limited, *free)]
    assert results == list(range(60))
    assert new.queue.counts().stats["done"] == 60
    running: Counter[str] = Counter()
    most = 0
    for what, process, by, _ in calls():
        if what == "killed":
            del running[process]
        elif by == "2":
            running[process] += 1 if what == "begin" else -1
        most = max(most, running.total())
    assert most <= 2, "of those that were submitted with the limit"
    keys = internals_of(new.queue).keys
    for key in (keys.permits, keys.permit_holders, keys.lines, keys.blocked):
        assert not new.notes.exists(key)


def test_a_task_that_is_not_idempotent_is_not_run_again_when_its_worker_dies(
    releases: dict[int, Any], start: Start
) -> None:
    story = releases[1]
    fatal = story.pay.submit(1, True)
    others = [story.pay.submit(number, False) for number in (2, 3)]
    story.notes.set(story.key("go"), 1)
    victim = start(1, "victim")
    victim.wait(20)
    start(1, "other")

    with pytest.raises(TaskDead, match="outcome unknown: its worker died"):
        fatal.result(timeout=20)
    # What was only taken is run elsewhere.
    assert [handle.result(timeout=20) for handle in others] == [2, 3]
    assert sorted(story.paid()) == [1, 2, 3]


def test_a_task_that_is_not_idempotent_is_not_handed_back_by_an_interrupt(
    releases: dict[int, Any], start: Start
) -> None:
    story = releases[1]
    handle = story.pay.submit(1, False)
    worker = start(1, "interrupted")
    wait_until(lambda: story.paid() == [1], 20, "it to begin")
    worker.send_signal(signal.SIGINT)
    worker.wait(20)
    start(1, "other")

    with pytest.raises(TaskDead, match="outcome unknown: its worker was stopped"):
        handle.result(timeout=20)
    assert story.paid() == [1]


def test_a_log_is_complete_and_in_order_across_the_death_of_a_worker(
    releases: dict[int, Any], start: Start
) -> None:
    story = releases[1]
    handle = story.chatter.options(log=True).submit(60, 25)
    channel = LoggingChannel.memory()
    with handle.following(channel):
        victim = start(1, "victim")
        victim.wait(20)
        start(1, "other")
        # It went on where it had been, as it had noted.
        assert handle.result(timeout=20) == 25

    printed = [r.message for r in channel.records if r.stream == "stdout"]
    logged = [r.message for r in channel.records if r.stream == "log"]
    assert printed == [f"line {number}" for number in range(60)]
    assert logged == [f"logged {number}" for number in range(60)]
    assert [record.worker for record in channel.records] == (
        50 * ["victim.0"] + 70 * ["other.0"]
    )
    assert [record.sequence for record in channel.records] == [
        *range(1, 51),
        *range(1, 71),
    ]
    assert handle.logs() == channel.records
