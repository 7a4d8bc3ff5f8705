"""Sends scripts without waiting in between, each while the server runs the one before.

Two are under way at most: one that is run and one that waits. More would gain nothing,
and would have to be held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, TypeVar

from workstealing.drivers.packing import packed_call
from workstealing.queue.call import Call

__all__ = ("send_all", "send_all_async")

T = TypeVar("T")


def send_all(client: Any, calls: Iterable[Call[T]]) -> list[T]:
    """Run scripts over a plain client; return their answers."""
    pool, answers = client.connection_pool, list[T]()
    before: Call[T] | None = None
    connection = pool.get_connection()
    try:
        for call in chain(calls, (None,)):
            if call is not None:
                # In full: none can be repeated once the next one is on its way.
                connection.send_packed_command(packed_call(call, in_full=True))
            if before is not None:
                reply = connection.read_response(disable_decoding=before.is_raw)
                answers.append(before.parse(reply))
            before = call
    except BaseException:
        # There may be a reply to come, which is no answer to what others will ask.
        connection.disconnect()
        raise
    finally:
        pool.release(connection)
    return answers


async def send_all_async(client: Any, calls: Iterable[Call[T]]) -> list[T]:
    """Run scripts over a plain asyncio client; return their answers."""
    pool, answers = client.connection_pool, list[T]()
    before: Call[T] | None = None
    connection = await pool.get_connection()
    try:
        for call in chain(calls, (None,)):
            if call is not None:
                packed = packed_call(call, in_full=True)
                await connection.send_packed_command(packed)
            if before is not None:
                reply = await connection.read_response(disable_decoding=before.is_raw)
                answers.append(before.parse(reply))
            before = call
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)
    return answers
