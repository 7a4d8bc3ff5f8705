"""Workers die, freeze and come back: promises 3, 4 and 5 of the design."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import Recruiter, WorkStealer
from workstealing.client.queue_internals import internals_of
from workstealing.errors import TaskDead
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]


def done(story: Any) -> int:
    return int(story.queue.counts().stats.get("done", 0))


def test_promise_3_a_killed_worker_loses_nothing_and_repeats_little(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    handles = story.pause.submit_many([(n, 0.001) for n in range(1_500)])
    victim = processes.start(story)
    processes.start(story)
    wait_until(lambda: done(story) > 200, 20, "some to be done")
    victim.kill()
    story.queue.wait(timeout=30)

    runs = Counter(story.runs())
    again = [number for number, times in runs.items() if times > 1]
    assert set(runs) == set(range(1_500))
    assert set(runs.values()) <= {1, 2}
    # As many as last 50 ms, and the one that ran.
    assert len(again) <= 51
    counts = story.queue.counts()
    assert counts.stats["done"] == counts.outcomes == 1_500
    assert [handle.result(timeout=5) for handle in handles[::100]] == list(
        range(0, 1_500, 100)
    )


def test_promise_3_with_a_batch_of_one_only_the_task_that_ran_is_repeated(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    story.pause.submit_many([(n, 0.002) for n in range(200)])
    victim = processes.start(story, batch=1)
    wait_until(lambda: done(story) > 50, 20, "some to be done")
    victim.kill()
    victim.wait()
    processes.start(story, batch=1)
    story.queue.wait(timeout=30)

    runs = Counter(story.runs())
    assert set(runs) == set(range(200))
    assert sum(runs.values()) <= 201
    assert story.queue.counts().stats["done"] == 200


def test_promise_3_what_was_finished_before_a_long_task_is_not_repeated(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    before = story.note.submit_many([(n,) for n in range(150)])
    story.hold.submit(150)
    after = story.note.submit_many([(n,) for n in range(151, 300)])
    victim = processes.start(story)

    # They are told although the worker that did them is busy with another.
    assert [handle.result(timeout=10) for handle in before] == list(range(150))
    victim.kill()
    story.sound.set(story.key("go"), 1)
    processes.start(story)
    story.queue.wait(timeout=30)

    runs = Counter(story.runs())
    assert {number for number, times in runs.items() if times > 1} == {150}
    assert [handle.result(timeout=10) for handle in after] == list(range(151, 300))


def test_promise_3_the_late_outcome_of_a_frozen_worker_is_refused(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    handle = story.hold.submit(1)
    frozen = processes.start(story, pool="frozen")
    wait_until(lambda: story.runs() == [1], 10, "it to begin")
    os.kill(frozen.pid, signal.SIGSTOP)
    processes.start(story, pool="other")
    wait_until(lambda: story.runs() == [1, 1], 20, "another to take it up")
    os.kill(frozen.pid, signal.SIGCONT)

    # It is told that it is late, and its word does not count.
    told = wait_until(lambda: story.sound.lrange(story.key("lost"), 0, -1), 10, "it")
    assert told == [b"frozen.0"]
    members = internals_of(story.queue).keys.members
    wait_until(lambda: story.sound.hexists(members, "frozen.0"), 10, "its return")
    assert handle.state().state is State.RUNNING
    assert handle.state().worker == "other.0"
    story.sound.set(story.key("go"), 1)
    assert handle.result(timeout=10) == "done"
    assert story.queue.counts().stats["done"] == 1

    # And it is back at work: while the other is held, it does the rest.
    story.sound.delete(story.key("go"))
    for number in (2, 3):
        story.hold.submit(number)
    wait_until(lambda: sorted(story.runs()) == [1, 1, 2, 3], 10, "both to work")
    story.sound.set(story.key("go"), 1)
    story.queue.wait(timeout=20)


def test_promise_4_a_task_that_computes_for_several_leases_is_run_once(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server, lease=0.6)
    handle = story.compute.submit(1, 2.5)
    processes.start(story)
    wait_until(lambda: story.runs() == [1], 10, "it to begin")
    processes.start(story)

    assert handle.result(timeout=20) == 1
    assert story.runs() == [1]
    assert "reassigned" not in story.queue.counts().stats


def test_promise_4_a_dead_workers_tasks_run_elsewhere_with_only_workers(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    story.hold.submit(1)
    victim = processes.start(story)
    wait_until(lambda: story.runs() == [1], 10, "it to begin")
    processes.start(story)
    victim.kill()

    wait_until(lambda: story.runs() == [1, 1], 20, "another to take it up")
    story.sound.set(story.key("go"), 1)
    counts = story.queue.wait(timeout=10)
    assert counts.stats["reassigned"] == 1
    assert counts.stats["upkeep:worker"] >= 1


def test_promise_4_at_the_default_lease_it_takes_less_than_thirty_seconds(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server, lease=QueueSettings().lease_ms / 1000)
    story.hold.submit(1)
    victim = processes.start(story)
    wait_until(lambda: story.runs() == [1], 10, "it to begin")
    processes.start(story)
    victim.kill()

    wait_until(lambda: story.runs() == [1, 1], 30, "another to take it up")
    story.sound.set(story.key("go"), 1)
    story.queue.wait(timeout=10)


def test_promise_4_a_web_process_frees_the_tasks_for_a_late_worker(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    handle = story.hold.submit(1)
    victim = processes.start(story)
    wait_until(lambda: story.runs() == [1], 10, "it to begin")
    victim.kill()
    recruiter = Recruiter(share=None)
    recruiter.install(WorkStealer(story.queue), "tasks", rate=0.2)

    def is_free() -> bool:
        recruiter.enlist()
        return bool(handle.state().state is State.WAITING)

    wait_until(is_free, 20, "the task to be free")
    story.sound.set(story.key("go"), 1)
    processes.start(story)
    assert handle.result(timeout=20) == "done"


def test_promise_5_a_poisonous_task_is_given_up_and_its_neighbours_are_done(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server, lease=0.3)
    story.note.submit_many([(n,) for n in range(30)])
    poison = story.poison.submit(1000)
    story.note.submit_many([(n,) for n in range(30, 60)])
    started = 0
    while story.queue.counts().unfinished and started < 12:
        victim = processes.start(story)
        started += 1
        wait_until(
            lambda died=victim.poll: (
                died() is not None or not story.queue.counts().unfinished
            ),
            20,
            "the worker to die, or all to be done",
        )

    with pytest.raises(TaskDead, match="its worker died 3 times"):
        poison.result(timeout=10)
    runs = Counter(story.runs())
    assert runs[1000] == 3
    assert set(range(60)) <= set(runs)
    assert story.queue.counts().stats["done"] == 60
    assert started <= 4
