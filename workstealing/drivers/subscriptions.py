"""Receives published outcomes, over one subscription per thread and queue.

A subscription is kept between two waits, since each needs a connection. It has its own
channel, on which only outcomes that this thread asked for are published. A thread that
has waited lately will probably wait again, so it asks for the outcome together with the
submission, which saves a round trip.
"""

from __future__ import annotations

import os
import time
from threading import local
from typing import Any
from weakref import WeakSet

from redis.client import PubSub
from redis.exceptions import ConnectionError as NotConnected

from workstealing.queue.steps import Subscription

__all__ = (
    "NOT_SUBSCRIBED",
    "ExpectedOutcomes",
    "OutcomeSubscriptions",
    "new_channel",
    "published",
)


class OutcomeSubscriptions:
    """The subscriptions of a driver."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._own = local()
        self._open: WeakSet[PubSub] = WeakSet()
        self.generation = 0
        """How often all subscriptions were ended by `hang_up`."""

    def subscribe(self, prefix: str, task_id: str) -> Subscription:
        """Subscribe to a channel of this thread, to wait for a task."""
        made = self._subscribed(prefix)
        if made is not None and made.generation != self.generation:
            self._give_up(prefix, made)
            made = None
        if made is None:
            made = _ThreadSubscription(
                self._client.pubsub(), new_channel(prefix), self.generation
            )
            try:
                made.pubsub.subscribe(made.channel)
            except BaseException:
                made.pubsub.close()
                raise
            self._open.add(made.pubsub)
            vars(self._own)[prefix] = made
        made.expected.note_wait()
        return Subscription(made.channel, task_id in made.expected)

    def expect(self, prefix: str, task_id: str) -> Subscription:
        """Expect the outcome of a task to come, if this thread has waited lately."""
        made = self._subscribed(prefix)
        if made is None or not made.expected.add(task_id):
            return NOT_SUBSCRIBED
        return Subscription(made.channel, is_requested=True)

    def wait(self, prefix: str, task_id: str, seconds: float) -> bytes | None:
        """Wait for an outcome; unexpected outcomes of other tasks are dropped."""
        made: _ThreadSubscription = vars(self._own)[prefix]
        early = made.expected.take(task_id)
        if early is not None:
            return early
        end = time.monotonic() + seconds
        try:
            if made.generation != self.generation:
                raise NotConnected("the subscription is at a server that was replaced")
            while (left := end - time.monotonic()) > 0.0:
                message = made.pubsub.get_message(
                    ignore_subscribe_messages=True, timeout=left
                )
                if message is not None:
                    data = published(made.pubsub, message)
                    ended, _, outcome = data.partition(b" ")
                    if ended == task_id.encode():
                        return outcome
                    made.expected.keep(ended.decode(), outcome)
        except BaseException:
            # The state of the connection is unknown; the next wait opens another.
            self._give_up(prefix, made)
            raise
        return None

    def hang_up(self, generation: int) -> None:
        """Make each thread subscribe again, unless that was requested meanwhile.

        Args:
            generation: what it was when the refused command was sent.
        """
        if generation == self.generation:
            self.generation = generation + 1

    def close(self) -> None:
        """End all subscriptions."""
        for pubsub in tuple(self._open):
            pubsub.close()
        self._own = local()

    def _subscribed(self, prefix: str) -> _ThreadSubscription | None:
        made: _ThreadSubscription | None = vars(self._own).get(prefix)
        return made if made is not None and made.pid == os.getpid() else None

    def _give_up(self, prefix: str, made: _ThreadSubscription) -> None:
        del vars(self._own)[prefix]
        made.pubsub.close()


NOT_SUBSCRIBED = Subscription("", is_requested=False)


def new_channel(prefix: str) -> str:
    """Return the name of a new channel."""
    return prefix + os.urandom(8).hex()


def published(pubsub: Any, message: dict[str, Any]) -> bytes:
    """Return what was published, also if the client decodes it, by any encoding."""
    data: bytes = pubsub.encoder.encode(message["data"])
    return data


class _ThreadSubscription:
    """One subscription, of one thread of one process."""

    __slots__ = ("channel", "expected", "generation", "pid", "pubsub")

    def __init__(self, pubsub: PubSub, channel: str, generation: int) -> None:
        self.pubsub = pubsub
        self.channel = channel
        self.generation = generation
        self.pid = os.getpid()
        self.expected = ExpectedOutcomes()


_SUBMISSIONS_PER_WAIT = 8
_MOST = 1000


class ExpectedOutcomes:
    """Outcomes that may be published before anybody waits for them.

    After each wait, the next few submissions are expected to be awaited, too. Programs
    that never wait, which is most, are sent nothing.
    """

    __slots__ = ("_credit", "_outcomes")

    def __init__(self) -> None:
        self._credit = 0
        self._outcomes: dict[str, bytes | None] = {}

    def note_wait(self) -> None:
        """Expect that the next few submissions are awaited, too."""
        self._credit = _SUBMISSIONS_PER_WAIT

    def add(self, task_id: str) -> bool:
        """Expect the outcome of a task, if a recent wait makes that likely."""
        if self._credit <= 0:
            return False
        self._credit -= 1
        self._outcomes[task_id] = None
        if len(self._outcomes) > _MOST:
            del self._outcomes[next(iter(self._outcomes))]
        return True

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._outcomes

    def keep(self, task_id: str, outcome: bytes) -> None:
        """Keep an outcome that came before anybody waited for it, if expected."""
        if task_id in self._outcomes:
            self._outcomes[task_id] = outcome

    def take(self, task_id: str) -> bytes | None:
        """Stop expecting an outcome; return it if it has come already."""
        return self._outcomes.pop(task_id, None)
