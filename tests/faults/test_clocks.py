"""The clock of the server jumps while workers work."""

from __future__ import annotations

from threading import Event, Thread

from redis import Redis

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.queue.keys import QueueKeys
from workstealing.testing import Server, wait_until

# To put all leases and looks into the past is the same, as seen from there.
_JUMP = """
for _, worker in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('ZINCRBY', KEYS[1], -ARGV[1], worker)
end
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
  redis.call('HINCRBY', KEYS[2], field, -ARGV[1])
end
"""


def jump(client: Redis, keys: QueueKeys, seconds: int) -> None:
    client.eval(_JUMP, 2, keys.workers, keys.upkeep, seconds * 1000)


def test_a_clock_that_jumps_ahead_takes_no_task_from_a_living_worker(
    redis_server: Server, redis_client: Redis, key_prefix: str
) -> None:
    runs: list[int] = []
    is_over = Event()
    with TaskQueue(key_prefix, redis_server.url) as queue:

        @queue.task
        def long(number: int) -> int:
            runs.append(number)
            is_over.wait(30)
            return number

        handles = [long.submit(number) for number in range(2)]
        workers = [Worker(queue) for _ in range(3)]
        threads = [Thread(target=worker.run, daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        keys = internals_of(queue).keys
        wait_until(lambda: len(runs) == 2, 20, "both to run")
        wait_until(lambda: redis_client.hexists(keys.upkeep, "looked"), 20, "a look")

        looked = redis_client.hget(keys.upkeep, "looked")
        jump(redis_client, keys, 3600)
        wait_until(
            lambda: redis_client.hget(keys.upkeep, "looked") > looked, 20, "a look"
        )
        is_over.set()

        assert [handle.result(20) for handle in handles] == [0, 1]
        assert sorted(runs) == [0, 1]
        assert not any(worker.stats.lost_leases for worker in workers)
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join(20)
