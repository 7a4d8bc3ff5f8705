"""Sends many scripts over one connection of redis-py without waiting in between.

Each is sent while the server runs the one before. Two are under way at most: one that
runs and one that waits. More would gain nothing, and would take memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from redis.exceptions import NoScriptError

from workstealing.drivers.connection import packed_call
from workstealing.queue.steps import Call

__all__ = ("send_all", "send_all_async")

T = TypeVar("T")

# With more arguments than this, a call counts as long without a look at them.
_FEW = 64


def send_all(client: Any, calls: Iterable[Call[T]]) -> list[T]:
    """Run scripts over a plain client; return their answers."""
    pool, sent = client.connection_pool, _Bulk[T]()
    connection = pool.get_connection()
    try:
        for call in chain(calls, (None,)):
            before = sent.before
            if call is not None:
                connection.send_packed_command(sent.packed(call))
            if before is not None:
                try:
                    reply = connection.read_response(disable_decoding=before.is_raw)
                except NoScriptError:
                    sent.note_refused(before)
                else:
                    sent.note(before, reply)
            sent.before = call
        for call in sent.refused():
            connection.send_packed_command(packed_call(call, in_full=True))
            reply = connection.read_response(disable_decoding=call.is_raw)
            sent.note_late(reply)
    except BaseException:
        # A late reply would be taken for the answer to the next call.
        connection.disconnect()
        raise
    finally:
        pool.release(connection)
    return sent.answers


async def send_all_async(client: Any, calls: Iterable[Call[T]]) -> list[T]:
    """Run scripts over a plain asyncio client; return their answers."""
    pool, sent = client.connection_pool, _Bulk[T]()
    connection = await pool.get_connection()
    try:
        for call in chain(calls, (None,)):
            before = sent.before
            if call is not None:
                await connection.send_packed_command(sent.packed(call))
            if before is not None:
                try:
                    reply = await connection.read_response(
                        disable_decoding=before.is_raw
                    )
                except NoScriptError:
                    sent.note_refused(before)
                else:
                    sent.note(before, reply)
            sent.before = call
        for call in sent.refused():
            await connection.send_packed_command(packed_call(call, in_full=True))
            reply = await connection.read_response(disable_decoding=call.is_raw)
            sent.note_late(reply)
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)
    return sent.answers


class _Bulk(Generic[T]):
    """Which of many calls were sent, and their answers.

    A script is sent in full once, and then by its hash if it is longer than its
    arguments. If the server has forgotten it meanwhile, the call is repeated at the
    end. A call with longer arguments, such as a part of a long submission, is always
    sent in full, so that it runs in its turn.
    """

    def __init__(self) -> None:
        self.before: Call[T] | None = None
        """The call that is under way."""
        self.answers: list[T] = []
        self._known: set[str] = set()
        self._refused: list[tuple[int, Call[T]]] = []

    def packed(self, call: Call[T]) -> list[bytes]:
        """Return a call as connections take it."""
        is_known = call.script.sha in self._known
        self._known.add(call.script.sha)
        return packed_call(call, in_full=not (is_known and _is_short(call)))

    def note(self, call: Call[T], reply: Any) -> None:
        """Keep the answer to the call whose turn it is."""
        self.answers.append(call.parse(reply))

    def note_refused(self, call: Call[T]) -> None:
        """Keep a place for the answer to a call whose script the server lacks."""
        self._known.discard(call.script.sha)
        self._refused.append((len(self.answers), call))
        self.answers.append(cast("T", None))

    def refused(self) -> Iterator[Call[T]]:
        """Return calls to be repeated; the answer to each is noted before the next."""
        while self._refused:
            yield self._refused[0][1]

    def note_late(self, reply: Any) -> None:
        """Keep the answer to the call that was repeated."""
        place, call = self._refused.pop(0)
        self.answers[place] = call.parse(reply)


def _is_short(call: Call[Any]) -> bool:
    """Return whether a call is shorter than its script."""
    arguments = call.arguments
    if len(arguments) > _FEW:
        return False
    texts = (one for one in arguments if isinstance(one, str | bytes))
    return sum(map(len, texts)) < len(call.script.text)
