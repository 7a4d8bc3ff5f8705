"""Follows what Sentinels announce, so that clients leave an old primary at once.

In a planned failover the old primary takes writes until a Sentinel demotes it, some ten
seconds after another one was promoted; all of them are lost. The primary that a
Sentinel names when asked may be out of date by a second. So a watch subscribes to the
announcements of all Sentinels of a service, since only the one that leads a failover
announces its steps. When a replica is told to become the primary, the watch asks it for
its role until it has. Then there is news, which the pools of clients look for whenever
they are used: they never wait for a watch, and it touches none of their connections.

It is one daemon thread per process and set of Sentinels. It starts with the first pool
that is used, and ends, and closes its connections, when none is left. It never raises.
Each Sentinel is asked for the primary every few seconds, over its subscription: so
silence is noticed, and so is what was announced while nobody listened. Where a user may
not subscribe, it is asked once a second instead.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from threading import RLock, Thread
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing._forking import reset_in_children
from workstealing._printing import escaping_logger
from workstealing.drivers.sentinel_announcements import ServerAddress, read_reply
from workstealing.drivers.sentinel_connections import Promotion, SubscribedSentinel

__all__ = ("News", "SentinelWatch", "shared_watch")

# The others hear of a failover, and name the new primary, within two seconds. Until
# then, they must not lead clients back to the old one.
_NEWS_SECONDS = 10.0
# While one connects, the announcements of the others are not heard.
_PATIENCE = 0.5
# Whether a pool was forgotten without being closed is looked at so often.
_IDLE_SECONDS = 1.0
# Of one Sentinel at a time; the others have their turn before it says more.
_MOST_REPLIES = 1000

# It takes no file of its own, which a forked child would keep.
_Selector: Any = getattr(selectors, "PollSelector", selectors.SelectSelector)

_log = escaping_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class News:
    """The primary that was announced; None means to ask a Sentinel.

    Each is another one: a pool has heard it if it has this very object.
    """

    primary: ServerAddress | None = None


class SentinelWatch:
    """What pools know of the primary of one service, and the thread that learns it."""

    def __init__(
        self,
        hosts: Iterable[ServerAddress],
        service: str,
        for_sentinels: dict[str, Any],
        for_primary: dict[str, Any],
    ) -> None:
        self.service = service
        self._sentinels = [(*host, for_sentinels) for host in hosts]
        self._for_primary = for_primary
        self._listener: _Listener | None = None
        self._start_over()
        reset_in_children(self, SentinelWatch._start_over)

    def _start_over(self) -> None:
        # A pool may be forgotten, and leave, anywhere in a thread that holds this.
        self._lock = RLock()
        self._pools: WeakSet[Any] = WeakSet()
        listener, self._listener = self._listener, None
        self._forget()
        if listener is not None:
            listener.close()

    def _forget(self) -> None:
        self._fresh: tuple[ServerAddress | None, float] = None, 0.0
        self.news = News()

    def join(self, pool: object) -> News:
        """Watch for a pool, until it leaves or is forgotten; return the last news."""
        with self._lock:
            self._pools.add(pool)
            if self._listener is None:
                # An interpreter that ends starts no threads; one without files left
                # cannot listen. Clients still ask when they connect.
                with suppress(RuntimeError, OSError):
                    self._listener = _started(self, self._sentinels, self._for_primary)
            return self.news

    def leave(self, pool: object) -> Thread | None:
        """Watch no longer for a pool; return the thread if it ends now."""
        with self._lock:
            if pool not in self._pools:
                # One that was closed is closed once more when it is garbage.
                return None
            self._pools.discard(pool)
            listener = self._listener
            if listener is None or self._pools:
                return None
        listener.wake()
        return listener.thread

    def primary(self) -> ServerAddress | None:
        """Return the primary if the news is so fresh that Sentinels may not know it."""
        primary, end = self._fresh
        return primary if time.monotonic() < end else None

    def tell(self, primary: ServerAddress | None) -> None:
        """Let all pools know which is the primary now; None has them ask."""
        with self._lock:
            is_known = primary is not None and primary == self.primary()
            self._fresh = primary, time.monotonic() + _NEWS_SECONDS
            if is_known:
                return
            self.news = News(primary)
        if primary is not None:
            # A filter of the host's may raise.
            with suppress(Exception):
                _log.info("The primary of %s is now %s:%d.", self.service, *primary)

    def ends_unused(self) -> bool:
        """Return whether the thread has to end, since no pool is left."""
        with self._lock:
            if self._pools:
                return False
            self._listener = None
            # With no thread to listen, it would go out of date.
            self._forget()
            return True


_watches: WeakValueDictionary[Any, SentinelWatch] = WeakValueDictionary()


def shared_watch(
    hosts: tuple[ServerAddress, ...],
    service: str,
    for_sentinels: dict[str, Any],
    for_primary: dict[str, Any],
) -> SentinelWatch:
    """Return the watch of this process; it is kept while a pool has it.

    Args:
        hosts: the Sentinels, one of which suffices.
        service: the name that they know the primary by.
        for_sentinels: how to log in there; times to wait are our own.
        for_primary: how to log in at primary and replicas.
    """
    own = {"retry": Retry(NoBackoff(), 0), "protocol": 2}
    own |= dict.fromkeys(("socket_timeout", "socket_connect_timeout"), _PATIENCE)
    made = SentinelWatch(hosts, service, for_sentinels | own, for_primary | own)
    logins = [
        sorted((k, v) for k, v in one.items() if k not in ("client_name", *own))
        for one in (for_sentinels, for_primary)
    ]
    key = (hosts, service, repr(logins))
    # Two threads may get one each in a race, which does no harm.
    return _watches.setdefault(key, made)


def _started(watch: SentinelWatch, sentinels: Any, for_primary: Any) -> _Listener:
    listener = _Listener(watch, sentinels, for_primary)
    try:
        listener.thread.start()
    except BaseException:
        listener.close()
        raise
    return listener


class _Listener:
    """The thread of a watch, with its connections."""

    def __init__(
        self,
        watch: SentinelWatch,
        sentinels: Iterable[tuple[str, int, dict[str, Any]]],
        for_primary: dict[str, Any],
    ) -> None:
        self._watch = watch
        self._sentinels = [
            SubscribedSentinel(host, port, settings)
            for host, port, settings in sentinels
        ]
        self._for_primary = for_primary
        self._promotion: Promotion | None = None
        self._named: ServerAddress | None = None
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self.thread = Thread(
            target=self._run, name="workstealing-sentinel", daemon=True
        )

    def wake(self) -> None:
        """Have it look around at once."""
        with suppress(OSError):
            self._waker.send(b"!")

    def close(self) -> None:
        """Close its connections."""
        for one in self._sentinels:
            one.hang_up()
        self._end_promotion()
        self._woken.close()
        self._waker.close()

    def _run(self) -> None:
        while not self._watch.ends_unused():
            try:
                self._listen()
            except Exception:  # noqa: BLE001 - nothing may end it
                # Such as of a system without memory; pools rely on this thread.
                with suppress(Exception):
                    _log.exception(
                        "The Sentinels could not be listened to; will go on."
                    )
                time.sleep(_PATIENCE)
        self.close()

    def _listen(self) -> None:
        for one in self._sentinels:
            if one.due() <= time.monotonic():
                one.look(self._watch.service)
        self._look_at_promotion()
        for one in self._heard():
            for reply in islice(one.replies(), _MOST_REPLIES):
                self._heed(one, reply)

    def _heard(self) -> list[SubscribedSentinel]:
        """Wait until something is due; return the Sentinels that said something."""
        dues = [one.due() for one in self._sentinels]
        if self._promotion is not None:
            dues.append(self._promotion.due)
        seconds = min(dues) - time.monotonic()
        with _Selector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            for one in self._sentinels:
                if one.socket is not None:
                    selector.register(one.socket, selectors.EVENT_READ, one)
            ready = selector.select(max(0.0, min(seconds, _IDLE_SECONDS)))
        heard = [key.data for key, _ in ready]
        if None in heard:
            self._woken.recv(1024)
        return [one for one in heard if one is not None]

    def _heed(self, sentinel: SubscribedSentinel, reply: Any) -> None:
        told = read_reply(reply, self._watch.service)
        if told is None:
            return
        if told.what == "promoting" and told.address:
            self._begin_promotion(told.address)
        elif told.what == "promoted":
            self._end_promotion()
            self._named = told.address
            self._watch.tell(told.address)
        elif told.what == "given up":
            # The replica, if it was promoted after all, will be made one again.
            self._end_promotion()
            self._watch.tell(None)
        else:
            self._heed_name(sentinel, told.address)

    def _heed_name(
        self, sentinel: SubscribedSentinel, address: ServerAddress | None
    ) -> None:
        """Compare the primary that a Sentinel names with the one that it named before.

        The same one is no news: a Sentinel that is cut off from the others may name an
        old primary. But if no other is connected, it has to be believed. Even so, it
        may have been restarted with an old configuration: the server that it names must
        say itself that it is a primary.
        """
        if self._promotion is not None:
            # One is awaited already; the Sentinel will be asked again.
            return
        before, sentinel.named = sentinel.named, address
        if before is None and not any(
            one.socket for one in self._sentinels if one is not sentinel
        ):
            before = self._named
        if before is None or before == address:
            self._named = self._named or address
        else:
            self._named = address
            if address is not None:
                self._begin_promotion(address)

    def _begin_promotion(self, address: ServerAddress) -> None:
        promotion = self._promotion
        if promotion is None or promotion.address != address:
            self._end_promotion()
            self._promotion = promotion = Promotion(address, self._for_primary)
        promotion.hurry()

    def _look_at_promotion(self) -> None:
        promotion = self._promotion
        if promotion is None or promotion.due > time.monotonic():
            return
        if promotion.is_done():
            self._watch.tell(promotion.address)
            self._end_promotion()
        elif promotion.is_late():
            self._end_promotion()

    def _end_promotion(self) -> None:
        if self._promotion is not None:
            self._promotion.hang_up()
            self._promotion = None
