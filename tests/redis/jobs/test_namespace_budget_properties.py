from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing.errors import Conflict
from workstealing.jobs import NamespaceBudget
from workstealing.testing import Server

MOST = 3
WRITES = ("write", "write quietly", "touch", "begin", "step")
DELETES = ("delete", "lease runs out")


def histories(*changes: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    step = st.tuples(
        st.sampled_from((*changes, "begin", "step", "step", "step")), st.integers(0, 5)
    )
    return st.lists(step, min_size=20, max_size=80)


class Story:
    """Plays a history of writers and recruits on one namespace."""

    def __init__(
        self,
        client: Redis,
        stepped: Callable[..., Any],
        batch: int,
        nodes: tuple[str, ...],
    ) -> None:
        self.client, self.stepped, self.nodes = client, stepped, nodes
        self.prefix = uuid4().hex
        self.job = NamespaceBudget(
            client,
            f"{self.prefix}-budget",
            f"{self.prefix}:",
            most_keys=MOST,
            most_bytes=1_000_000,
            batch=batch,
        )
        self.added: set[str] = set()
        self.slices: list[Any] = []

    def play(self, change: str, number: int) -> None:
        key = f"{self.prefix}:{number}"
        if change == "begin":
            steps = self.job._steps
            self.slices.append(
                self.stepped(self.job._driver, steps.enforce(), nodes=self.nodes)
            )
            self.advance(self.slices[-1], number)
        elif change == "step" and self.slices:
            self.advance(self.slices[number % len(self.slices)])
        elif change.startswith("write"):
            self.client.set(key, "value")
            if change == "write":
                self.job.add(key)
                self.added.add(key)
        elif change == "touch":
            self.job.touch(key)
        elif change == "delete":
            self.client.unlink(key)
        elif change == "lease runs out":
            self.client.unlink(f"{{{self.prefix}-budget}}:lease")

    def advance(self, recruit: Any, steps: int = 1) -> None:
        with suppress(Conflict):
            for _ in range(steps):
                if not recruit.ended:
                    recruit.step()
        self.slices = [each for each in self.slices if each._flow.gi_frame]

    @property
    def keys(self) -> set[str]:
        return {key.decode() for key in self.client.keys(f"{self.prefix}:*")}

    @property
    def index(self) -> set[str]:
        members = self.client.zrange(f"{{{self.prefix}-budget}}:index", 0, -1)
        return {member.decode() for member in members}

    def settle(self) -> None:
        for each in self.slices:
            with suppress(Conflict):
                each.finish()
        self.play("lease runs out", 0)
        for _ in range(3000):
            self.job.recruited()
            keys = self.keys
            if len(keys) <= MOST and self.index == keys:
                return
        raise AssertionError(f"index {self.index}, keys {self.keys}")


@pytest.fixture(scope="module")
def quiet_client() -> Iterator[Redis]:
    """A client of a server with no other keys: a scan soon comes round."""
    with Server() as server, Redis.from_url(server.url) as client:
        yield client


@pytest.mark.parametrize("nodes", [("single",), ("a:1", "b:2")], ids=["one", "two"])
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories(*WRITES, *DELETES), batch=st.integers(1, 8))
def test_no_slice_forgets_a_key_that_is_there_and_in_the_end_the_index_is_right(
    quiet_client: Redis,
    stepped: Callable[..., Any],
    nodes: tuple[str, ...],
    history: list[tuple[str, int]],
    batch: int,
) -> None:
    story = Story(quiet_client, stepped, batch, nodes)

    for change, number in history:
        story.play(change, number)
        if change == "write quietly":
            # Its entry may be on its way out: nobody told that it is back.
            story.added.discard(f"{story.prefix}:{number}")
        assert story.added & story.keys <= story.index

    story.settle()
    quiet_client.unlink(*quiet_client.keys())


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories(*WRITES), batch=st.integers(1, 8))
def test_no_slice_evicts_more_than_the_budget_asks_for(
    quiet_client: Redis,
    stepped: Callable[..., Any],
    history: list[tuple[str, int]],
    batch: int,
) -> None:
    story = Story(quiet_client, stepped, batch, ("single",))
    for number in range(MOST + 1):
        story.play("write", number)

    for change, number in history:
        before = story.keys
        # An entry whose key was just evicted counts until a slice has looked at it.
        ghosts = len(story.index - before)
        story.play(change, number)
        if change == "step":
            assert len(story.keys) >= min(len(before), MOST - ghosts)

    story.settle()
    quiet_client.unlink(*quiet_client.keys())
