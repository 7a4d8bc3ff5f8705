"""A job that was given a URL releases its connections by `close()`."""

from __future__ import annotations

import asyncio

from redis import Redis

from workstealing.jobs import AsyncVolatileHash, VolatileHash
from workstealing.testing import Server, wait_until


def named(url: str, name: str) -> str:
    """Have a server list the connections of a URL by a name."""
    return f"{url}{'&' if '?' in url else '?'}client_name={name}"


def connections(client: Redis, name: str) -> int:
    return sum(one["name"] == name for one in client.client_list())


def test_a_closed_job_leaves_no_connection_behind(
    redis_client: Redis, redis_server: Server, key_prefix: str
) -> None:
    job = VolatileHash(named(redis_server.url, key_prefix), key_prefix)

    for _ in range(2):
        job.recruited()
        assert connections(redis_client, key_prefix) == 1
        job.close()
        wait_until(
            lambda: not connections(redis_client, key_prefix), 10, "it to hang up"
        )


async def test_a_closed_asyncio_job_leaves_no_connection_behind(
    redis_client: Redis, redis_server: Server, key_prefix: str
) -> None:
    job = AsyncVolatileHash(named(redis_server.url, key_prefix), key_prefix)

    for _ in range(2):
        await job.recruited()
        assert connections(redis_client, key_prefix) == 1
        await job.close()
        wait_until(
            lambda: not connections(redis_client, key_prefix), 10, "it to hang up"
        )


def test_an_asyncio_job_with_a_url_works_in_several_event_loops(
    redis_client: Redis, redis_server: Server, key_prefix: str
) -> None:
    """As in a site that runs a loop for each request, or one in each thread."""
    job = AsyncVolatileHash(named(redis_server.url, key_prefix), key_prefix)
    loops = [asyncio.new_event_loop() for _ in range(2)]

    are_new = [loop.run_until_complete(job.set("f", "v", 60)) for loop in loops]
    for loop in loops:
        loop.run_until_complete(job.close())
        loop.close()

    assert are_new == [True, False]
    wait_until(lambda: not connections(redis_client, key_prefix), 10, "it to hang up")


def test_a_closed_job_leaves_a_client_that_it_was_given_open(
    redis_client: Redis, key_prefix: str
) -> None:
    job = VolatileHash(redis_client, key_prefix)
    job.recruited()
    before = redis_client.client_id()

    job.close()

    assert redis_client.client_id() == before
