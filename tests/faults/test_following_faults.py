"""Slices that follow, budget, flush, refresh and reclaim, when the server fails.

Whatever happens, the right error comes out and nothing is lost: when the server is
well again, slices reach their goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing.drivers.sync_driver import Driver
from workstealing.errors import (
    Conflict,
    RedisOutOfMemory,
    RedisReadOnly,
    RedisUnavailable,
    WrongType,
)
from workstealing.jobs import (
    CounterFlush,
    MissingTTL,
    NamespaceBudget,
    PendingReclaim,
    QueueTracker,
    RefreshAhead,
    XFetch,
)
from workstealing.queue.steps import Call, Step
from workstealing.testing import Server


class Story:
    """A job with work to do, and how to see that it was done."""

    keys: tuple[str, ...]
    """Keys that the slice needs, each of which may be of a wrong type."""

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.told: list[Any] = []
        self.job = self.prepare()

    def prepare(self) -> Any:
        """Make the job and its work."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Tell whether the work was done, and nothing was lost."""
        raise NotImplementedError

    def finish(self) -> bool:
        """Run slices by a sound client, with all leases run out."""
        self.job._driver = Driver(self.client)
        for _ in range(40):
            for key in self.client.keys("*lease*"):
                self.client.unlink(key)
            self.revive()
            with suppress(Conflict):
                self.job.recruited()
            if self.is_done():
                return True
        return False

    def three_slices(self) -> None:
        for _ in range(3):
            self.job.recruited()

    def revive(self) -> None:
        """Let time pass for what a dead recruit held."""


class Tracked(Story):
    keys = ("things", "{things}:tracking")

    def prepare(self) -> Any:
        job = QueueTracker(
            self.client,
            "things",
            next_rows=lambda after, count: ["1", "2"],
            still_there=lambda ids: set(ids) & {"1", "2"},
        )
        job.add("1", "gone")
        return job

    def is_done(self) -> bool:
        assert self.job.contains("1")
        return self.job.ids() == {"1", "2"}


class Forgotten(Story):
    keys = ("{notes}:giving", "{notes}:giving:samples")

    def prepare(self) -> Any:
        self.client.mset({"cache:1": "x", "cache:2": "x"})
        return MissingTTL(self.client, "notes", "cache:*", ttl=100, dry_run=False)

    def is_done(self) -> bool:
        assert self.client.exists("cache:1", "cache:2") == 2
        return all(self.client.ttl(key) > 0 for key in ("cache:1", "cache:2"))


class Budgeted(Story):
    keys = ("{cap}:index", "{cap}:sizes", "{cap}:state", "{cap}:lease")

    def prepare(self) -> Any:
        job = NamespaceBudget(
            self.client, "cap", "cache:", most_keys=2, most_bytes=1_000_000
        )
        for idle, key in enumerate(("cache:1", "cache:2", "cache:3")):
            self.client.set(key, "x")
            dump = self.client.dump(key)
            self.client.restore(key, 0, dump, replace=True, idletime=idle * 100)
            job.add(key)
        return job

    def is_done(self) -> bool:
        assert self.client.exists("cache:1", "cache:2") == 2
        return self.client.exists("cache:3") == 0 and self.job.usage().keys == 2


class Counted(Story):
    keys = ("hits", "{hits}:taken", "{hits}:batch", "{hits}:lease")

    def prepare(self) -> Any:
        job = CounterFlush(self.client, "hits", lambda *batch: self.told.append(batch))
        job.increment("page", 7)
        return job

    def is_done(self) -> bool:
        # The sink keeps one batch for each id.
        assert dict(self.told) in (
            {},
            {self.told[0][0]: {"page": 7}} if self.told else {},
        )
        return bool(self.told) and self.job.pending() == 0


class Refreshed(Story):
    keys = ("{values}:value:a", "{values}:due", "{values}:lease:a")

    def prepare(self) -> Any:
        job = RefreshAhead(
            self.client,
            "values",
            lambda name: self.told.append(name) or f"value{len(self.told)}",
            ttl=100,
            ahead=100,
            xfetch=XFetch(beta=0.0),
        )
        job.get("a")
        assert job.get("a") == b"value1"
        return job

    def is_done(self) -> bool:
        value = self.job.get("a")
        assert value is not None
        return value != b"value1"

    def revive(self) -> None:
        self.client.zadd("{values}:due", {"a": 1}, xx=True)


class Pending(Story):
    keys = ("orders", "{orders}:reclaim:group")

    def prepare(self) -> Any:
        self.client.xgroup_create("orders", "group", mkstream=True)
        self.client.xadd("orders", {"number": 1})
        self.client.xreadgroup("group", "lost", {"orders": ">"})
        self.revive()
        return PendingReclaim(
            self.client, "orders", "group", lambda *entry: self.told.append(entry)
        )

    def is_done(self) -> bool:
        assert self.told or self.job.pending() == 1
        return bool(self.told) and self.job.pending() == 0

    def revive(self) -> None:
        entries = self.client.xpending_range("orders", "group", "-", "+", 10)
        for entry in entries:
            self.client.xclaim(
                "orders",
                "group",
                "lost",
                0,
                [entry["message_id"]],
                idle=61_000,
                justid=True,
            )


ALL = [Tracked, Forgotten, Budgeted, Counted, Refreshed, Pending]
Begin = Callable[[type[Story]], Story]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(appendonly="yes", appendfsync="always") as server:
        yield server


@pytest.fixture
def begin(server: Server) -> Iterator[Begin]:
    """Begin a story on the server of this test, by a client that never retries."""
    clients = []

    def start(kind: type[Story]) -> Story:
        client = Redis.from_url(server.url, retry=Retry(NoBackoff(), 0))
        clients.append(client)
        return kind(client)

    yield start
    for client in clients:
        client.close()


@pytest.mark.parametrize("kind", [Tracked, Refreshed])
def test_a_full_server_is_out_of_memory_and_nothing_is_lost(
    begin: Begin, kind: type[Story]
) -> None:
    story = begin(kind)
    story.client.config_set("maxmemory", 1)

    with pytest.raises(RedisOutOfMemory):
        story.job.recruited()
    story.client.config_set("maxmemory", 0)

    assert not story.is_done()
    assert story.finish()


@pytest.mark.parametrize("kind", [Forgotten, Budgeted, Counted, Pending])
def test_slices_that_make_room_work_on_a_full_server(
    begin: Begin, kind: type[Story]
) -> None:
    story = begin(kind)
    story.client.config_set("maxmemory", 1)

    assert story.finish()


def test_a_full_server_refuses_what_users_write_and_serves_what_they_read(
    begin: Begin,
) -> None:
    tracker, counters, values = (
        begin(kind).job for kind in (Tracked, Counted, Refreshed)
    )
    client = counters._driver.client
    client.config_set("maxmemory", 1)

    with pytest.raises(RedisOutOfMemory):
        tracker.add("3")
    with pytest.raises(RedisOutOfMemory):
        counters.increment("page")
    with pytest.raises(RedisOutOfMemory):
        values.get("b")
    assert tracker.ids() == {"1", "gone"}
    assert values.get("a") == b"value1"


def test_an_entry_that_a_full_server_cannot_bury_stays_pending(begin: Begin) -> None:
    story = begin(Pending)
    job = PendingReclaim(
        story.client, "orders", "group", lambda *_: None, max_deliveries=1
    )
    story.client.config_set("maxmemory", 1)

    with pytest.raises(RedisOutOfMemory):
        job.recruited()
    assert (job.pending(), job.dead()) == (1, 0)

    story.client.config_set("maxmemory", 0)
    story.revive()
    job.recruited()
    assert (job.pending(), job.dead()) == (0, 1)


@pytest.mark.parametrize("kind", ALL)
def test_a_read_only_replica_is_left_as_it_is(begin: Begin, kind: type[Story]) -> None:
    story = begin(kind)
    before = story.told.copy()
    story.client.execute_command("REPLICAOF", "127.0.0.1", "1")

    with pytest.raises(RedisReadOnly):
        story.job.recruited()
    assert story.told == before
    story.client.execute_command("REPLICAOF", "NO", "ONE")

    assert story.finish()


def test_a_read_only_replica_serves_values(begin: Begin) -> None:
    story = begin(Refreshed)
    story.client.hdel("{values}:value:a", "read")
    story.client.execute_command("REPLICAOF", "127.0.0.1", "1")

    assert story.job.get("a") == b"value1"


@pytest.mark.parametrize(
    ("kind", "key"), [(kind, key) for kind in ALL for key in kind.keys]
)
def test_a_key_of_another_type_is_said_to_be_one_and_nothing_is_lost(
    begin: Begin, kind: type[Story], key: str
) -> None:
    story = begin(kind)
    if story.client.exists(key):
        story.client.rename(key, "aside")
    story.client.lpush(key, "a list")

    with pytest.raises(WrongType):
        story.three_slices()  # one may not need each key
    assert story.client.lrange(key, 0, -1) == [b"a list"]

    story.client.unlink(key)
    if story.client.exists("aside"):
        story.client.rename("aside", key)
    assert story.finish()


def test_an_entry_whose_grave_is_of_another_type_stays_pending(begin: Begin) -> None:
    story = begin(Pending)
    job = PendingReclaim(
        story.client, "orders", "group", lambda *_: None, max_deliveries=1
    )
    story.client.set("{orders}:dead:group", "a string")

    with pytest.raises(WrongType):
        job.recruited()

    assert job.pending() == 1


@pytest.mark.parametrize("kind", ALL)
def test_a_server_that_is_down_is_unavailable(
    begin: Begin, server: Server, kind: type[Story]
) -> None:
    story = begin(kind)
    server.kill()

    with pytest.raises(RedisUnavailable):
        story.job.recruited()
    server.restart()

    assert story.finish()


@pytest.mark.parametrize("kind", ALL)
def test_a_slice_that_a_restart_cuts_in_two_loses_nothing(kind: type[Story]) -> None:
    cut = [steps for steps in range(1, 10) if is_cut_after(steps, kind)]

    assert cut == list(range(1, len(cut) + 1))
    assert cut


def is_cut_after(steps: int, kind: type[Story]) -> bool:
    """Kill the server between two steps; tell whether the slice had as many."""
    with (
        Server(appendonly="yes", appendfsync="always") as server,
        Redis.from_url(server.url, retry=Retry(NoBackoff(), 0)) as client,
    ):
        story = kind(client)
        story.job._driver = KilledAfter(client, server, steps)
        try:
            story.job.recruited()
        except RedisUnavailable:
            server.restart()
            assert story.finish()
            return True
    return False


@pytest.mark.parametrize("kind", ALL)
def test_a_script_that_is_sent_twice_because_its_reply_was_lost_does_no_harm(
    kind: type[Story],
) -> None:
    repeated = []
    for place in range(1, 10):
        with Server() as server, Redis.from_url(server.url) as client:
            story = kind(client)
            story.job._driver = driver = SentTwice(client, place)
            # Only a scan takes its own second step for somebody else's.
            with suppress(*[Conflict] * (kind is Forgotten)):
                story.job.recruited()
            assert story.finish()
            repeated.append(driver.sent)

    assert repeated[0] is not None
    assert len(set(repeated)) > 1


class SentTwice(Driver):
    """Sends one script twice, and hears only the second reply."""

    def __init__(self, client: Redis, place: int) -> None:
        super().__init__(client)
        self._place = place
        self.sent: str | None = None

    def _send(self, step: Step) -> Any:
        if isinstance(step, Call):
            self._place -= 1
            if self._place == 0:
                self.sent = step.script.name
                super()._send(step)
        return super()._send(step)


class KilledAfter(Driver):
    """Performs some steps, and then finds no server."""

    def __init__(self, client: Redis, server: Server, steps: int) -> None:
        super().__init__(client)
        self._server, self._steps = server, steps

    def _perform(self, step: Step) -> Any:
        if self._steps == 0:
            self._server.kill()
        self._steps -= 1
        return super()._perform(step)
