"""The last steals, and the releases that joined, as an inspector reads them."""

from __future__ import annotations

from redis import Redis

from workstealing import TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.inspecting import Inspector
from workstealing.queue.worker_calls import join, leave, steal


def _join(queue: TaskQueue, worker: str, *abilities: str) -> None:
    parts = internals_of(queue)
    described = {"abilities": list(abilities)}
    parts.driver.call(join(parts.keys, parts.settings, worker, worker, described))


def test_the_last_two_hundred_steals_are_kept(
    redis_client: Redis, key_prefix: str
) -> None:
    queue = TaskQueue(key_prefix, redis_client)
    parts = internals_of(queue)

    _join(queue, "a.0", "work@1")
    _join(queue, "b.0", "work@1")
    for n in range(205):
        ids = [f"{n}-{part}" for part in range(1 if n else 12)]
        redis_client.rpush(parts.keys.deque("a.0"), *ids)
        redis_client.hset(parts.keys.lock, mapping=dict.fromkeys(ids, "a.0#1"))
        parts.driver.call(steal(parts.keys, "a.0", "b.0"))
        if n == 0:
            (first,) = Inspector(queue).events().steals
        redis_client.delete(parts.keys.deque("a.0"), parts.keys.deque("b.0"))

    seen = Inspector(queue).events().steals

    assert (first.victim, first.thief, first.tasks) == ("a.0", "b.0", 6)
    assert len(seen) == 200
    times = [one.at_ms for one in seen]
    assert times == sorted(times, reverse=True)


def test_a_release_joins_once_however_many_workers_it_has(
    redis_client: Redis, key_prefix: str
) -> None:
    queue = TaskQueue(key_prefix, redis_client)
    for worker in ("a.0", "a.1", "a.2"):
        _join(queue, worker, "resize@1", "caption@1")
    for worker in ("b.0", "b.1"):
        _join(queue, worker, "resize@2", "caption@1")

    seen = Inspector(queue).events().releases

    assert [(one.worker, one.abilities) for one in seen] == [
        ("b.0", ("resize@2",)),
        ("a.0", ("resize@1", "caption@1")),
    ]


def test_the_same_release_that_starts_again_is_no_new_one(
    redis_client: Redis, key_prefix: str
) -> None:
    queue = TaskQueue(key_prefix, redis_client)
    parts = internals_of(queue)
    for _ in range(3):
        _join(queue, "a.0", "resize@1")
        parts.driver.call(leave(parts.keys, "a.0", "a.0", final=True))

    assert len(Inspector(queue).events().releases) == 1
