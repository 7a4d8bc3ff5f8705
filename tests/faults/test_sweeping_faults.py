"""Slices that sweep what is over, when the server is full, read-only, or restarted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing import Duty
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import (
    RedisOutOfMemory,
    RedisReadOnly,
    RedisUnavailable,
    WrongType,
)
from workstealing.jobs import (
    DeadMembers,
    IndexRepair,
    KeepUntil,
    VolatileHash,
    WindowTrimmer,
)
from workstealing.queue.steps import Call, Step
from workstealing.testing import Server


class Story:
    """A job with one thing that is over and one that lives, and how to see both."""

    key = "things"
    index = "things"

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.told: list[Any] = []
        self.job = self.make()
        self.prepare()

    def left(self) -> list[bytes]:
        """What is there, in whatever state."""
        return sorted(self.client.zrange(self.index, 0, -1))

    def write(self) -> None:
        """Write one thing more."""
        raise NotImplementedError

    def make(self) -> Any:
        raise NotImplementedError

    def prepare(self) -> None:
        raise NotImplementedError


class Fields(Story):
    index = "{things}:expires"

    def make(self) -> Any:
        return VolatileHash(
            self.client, self.key, on_expire=lambda name, _: self.told.append(name)
        )

    def prepare(self) -> None:
        self.job.set("alive", "x", 3600)
        self.job.set("over", "x", 3600)
        self.client.zadd(self.index, {"over": 1})

    def write(self) -> None:
        self.job.set("more", "x", 3600)

    def left(self) -> list[bytes]:
        assert sorted(self.client.hkeys(self.key)) == super().left()
        return super().left()


class Values(Story):
    index = "{things}:deadlines"

    def make(self) -> Any:
        return KeepUntil(self.client, self.key)

    def prepare(self) -> None:
        self.job.set("alive", "x", 3600)
        self.job.set("over", "x", 3600)
        self.client.zadd(self.index, {"over": 1})

    def write(self) -> None:
        self.job.set("more", "x", 3600)

    def left(self) -> list[bytes]:
        values = self.client.keys("{things}:value:*")
        assert sorted(v.split(b":")[-1] for v in values) == super().left()
        return super().left()


class Windows(Story):
    def make(self) -> Any:
        return WindowTrimmer(self.client, self.key, length=1)

    def prepare(self) -> None:
        self.client.zadd(self.key, {"over": 1, "alive": 2})


class Members(Story):
    def make(self) -> Any:
        return DeadMembers(
            self.client, self.key, silence=3600, on_dead=self.told.append
        )

    def prepare(self) -> None:
        self.job.join("alive")
        self.job.join("over")
        self.client.zadd(self.index, {"over": 1})

    def write(self) -> None:
        self.job.join("more")


class Indexes(Story):
    def make(self) -> Any:
        return IndexRepair(self.client, self.key, key_of=lambda name: f"k:{name}")

    def prepare(self) -> None:
        self.client.set("k:alive", "x")
        self.client.zadd(self.key, {"over": 1, "alive": 2})


ALL = [Fields, Values, Windows, Members, Indexes]
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


@pytest.mark.parametrize("kind", ALL)
def test_a_full_server_is_swept_all_the_same(begin: Begin, kind: type[Story]) -> None:
    story = begin(kind)
    story.client.config_set("maxmemory", 1)

    story.job.recruited()

    assert story.left() == [b"alive"]


@pytest.mark.parametrize("kind", [Fields, Values, Members])
def test_a_full_server_refuses_writes_and_nothing_is_half_written(
    begin: Begin, kind: type[Story]
) -> None:
    story = begin(kind)
    story.client.config_set("maxmemory", 1)

    with pytest.raises(RedisOutOfMemory):
        story.write()

    assert story.left() == [b"alive", b"over"]


def test_a_death_that_a_full_server_lets_nobody_claim_is_told_later(
    begin: Begin,
) -> None:
    story = begin(Members)
    story.job._driver.call(next(story.job._steps.remove_dead()))
    story.client.zadd("{things}:unreported", {"over": 1})
    story.client.config_set("maxmemory", 1)

    with pytest.raises(RedisOutOfMemory):
        story.job.recruited()
    assert story.told == []
    story.client.config_set("maxmemory", 0)

    story.job.recruited()
    assert story.told == [b"over"]


@pytest.mark.parametrize("kind", ALL)
def test_a_read_only_replica_is_left_as_it_is(begin: Begin, kind: type[Story]) -> None:
    story = begin(kind)
    story.client.execute_command("REPLICAOF", "127.0.0.1", "1")

    with pytest.raises(RedisReadOnly):
        story.job.recruited()

    assert story.left() == [b"alive", b"over"]
    assert story.told == []


@pytest.mark.parametrize("kind", ALL)
def test_a_key_of_another_type_is_said_to_be_one(
    begin: Begin, kind: type[Story]
) -> None:
    story = begin(kind)
    story.client.set(story.index, "a string")

    with pytest.raises(WrongType):
        story.job.recruited()

    assert story.client.get(story.index) == b"a string"


def test_a_hash_of_another_type_keeps_its_index(begin: Begin) -> None:
    story = begin(Fields)
    story.client.set(story.key, "a string")

    with pytest.raises(WrongType):
        story.job.recruited()

    assert story.client.zcard(story.index) == 2


def test_members_stay_where_the_list_of_deaths_is_of_another_type(
    begin: Begin,
) -> None:
    story = begin(Members)
    story.client.set("{things}:unreported", "a string")

    with pytest.raises(WrongType):
        story.job.recruited()

    assert story.left() == [b"alive", b"over"]


@pytest.mark.parametrize("kind", ALL)
def test_a_server_that_is_down_is_unavailable_and_swept_when_it_is_back(
    begin: Begin, server: Server, kind: type[Story]
) -> None:
    story = begin(kind)
    server.kill()

    with pytest.raises(RedisUnavailable):
        story.job.recruited()
    server.restart()

    story.job.recruited()
    assert story.left() == [b"alive"]


@pytest.mark.parametrize("kind", [Values, Members, Indexes])
def test_a_slice_that_a_restart_cuts_in_two_loses_nothing(
    begin: Begin, server: Server, kind: type[Story]
) -> None:
    story = begin(kind)
    story.job._driver = FirstStepThen(story.client, server.kill)

    with pytest.raises(RedisUnavailable):
        story.job.recruited()
    server.restart()

    story.job.recruited()
    assert story.left() == [b"alive"]


def test_a_death_told_just_before_a_restart_is_told_again_and_then_forgotten(
    begin: Begin, server: Server
) -> None:
    story = begin(Members)
    story.job._driver = FirstStepThen(story.client, server.kill)
    with pytest.raises(RedisUnavailable):
        story.job.recruited()
    server.restart()
    assert story.told == [b"over"]

    story.client.zadd("{things}:unreported", {"over": 1}, xx=True)
    assert story.job.recruited() is Duty.RECRUITED

    assert story.told == [b"over", b"over"]
    assert story.job.recruited() is Duty.DISMISSED


class FirstStepThen(Driver):
    """Runs the first script, lets something happen, and goes on."""

    def __init__(self, client: Redis, happen: Callable[[], None]) -> None:
        super().__init__(client)
        self._happen: Callable[[], None] | None = happen

    def _perform(self, step: Step) -> Any:
        answer = super()._perform(step)
        if self._happen is not None and isinstance(step, Call):
            self._happen()
            self._happen = None
        return answer
