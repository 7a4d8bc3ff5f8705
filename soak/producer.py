"""What producers do: submit tasks of all kinds, cancel, pause, wait, count.

What is to be submitted is noted before, and that it was accepted after. So a note
without the other is a doubt: the server may have it or not. An error that the
documentation does not name is noted as a surprise, which breaks the soak.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any
from uuid import uuid4

from soak import app
from workstealing import chain, group
from workstealing.client.task import Task
from workstealing.errors import (
    ConfigurationError,
    RedisError,
    ResultTimeout,
    TaskCancelled,
    TaskDead,
    TaskExpired,
    TaskFailed,
    TaskNotFound,
)

__all__ = ("GROUP_SIZES", "produce")

_ENDS = (
    ResultTimeout,
    TaskCancelled,
    TaskDead,
    TaskExpired,
    TaskFailed,
    TaskNotFound,
)
_REST = 0.04
GROUP_SIZES = (1, 5, 40)


def produce(seed: str) -> None:
    """Submit until SIGTERM."""
    is_over: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(1))
    producer = _Producer(Random(seed))
    while not is_over:
        producer.act()
        time.sleep(_REST)


class _Producer:
    """One who submits, and remembers the last handles."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._handles: deque[Any] = deque(maxlen=50)
        self._acts: dict[Callable[[], None], int] = {
            self._submit_one: 40,
            self._submit_many: 4,
            self._submit_crowd: 4,
            self._submit_unique: 8,
            self._submit_chain: 4,
            self._submit_group: 2,
            self._cancel: 4,
            self._await: 6,
            self._pause: 1,
            self._count: 10,
            self._replay: 1,
            self._change_limit: 1,
        }

    def act(self) -> None:
        """Do one thing."""
        acts = list(self._acts)
        (one,) = self._chance.choices(acts, list(self._acts.values()))
        try:
            one()
        except RedisError:
            time.sleep(0.1)
        except Exception as error:  # noqa: BLE001 - what nobody was told of
            app.ledger.note("surprise", one.__name__, repr(error))

    def _submit_one(self) -> None:
        draw = self._chance
        task, arguments = draw.choice(_ORDINARY)(draw)
        options: dict[str, Any] = {"id": f"{task.name}-{uuid4().hex}"}
        if draw.random() < 0.1:
            options["priority"] = draw.choice((0, 2))
        if draw.random() < 0.05:
            options["delay"] = draw.choice((0.2, 1.0, 3600.0))
        name = options["id"]
        sent = app.ledger.note("tried", name, task.name)
        for _ in range(5):
            # Under the same id it may be repeated when the reply was lost.
            with suppress(RedisError):
                self._accept(task.options(**options).submit(*arguments), sent)
                return
            time.sleep(0.2)

    def _submit_many(self) -> None:
        self._submit_all(
            app.quick,
            [
                (number, "x" * self._chance.choice((0, 500)))
                for number in range(self._chance.choice((5, 30, 100)))
            ],
        )

    def _submit_crowd(self) -> None:
        """Submit more than there is room for, so that a limit has work to do."""
        draw = self._chance
        task, longest = draw.choice(((app.seated, 0.08), (app.limited, 0.4)))
        key = draw.randrange(2)
        self._submit_all(task, [(key, draw.uniform(0.005, longest)) for _ in range(10)])

    def _submit_all(self, task: Task[Any, Any], calls: list[tuple[Any, ...]]) -> None:
        ids = [f"{task.name}-{uuid4().hex}" for _ in calls]
        for name in ids:
            sent = app.ledger.note("tried", name, task.name)
        for handle in task.submit_many(calls, ids=ids):
            self._accept(handle, sent)

    def _submit_unique(self) -> None:
        key = self._chance.randrange(20)
        task: Task[Any, Any] = self._chance.choice((app.alone, app.latest))
        second: float = 0.05 if task is app.alone else self._chance.randrange(1000)
        sent = app.ledger.note("tried", "", task.name)
        handle = task.submit(key, second)
        app.ledger.note("answered", task.name, handle.id, int(bool(handle.is_new)))
        if handle.is_new:
            self._accept(handle, sent)

    def _submit_chain(self) -> None:
        sent = app.ledger.note("tried", "", "chain")
        first = app.quick.s(1) if self._chance.random() < 0.8 else app.broken.s(1)
        handle = chain(first, app.follows.s(), app.follows.s()).submit()
        app.ledger.note("answered", "chain", handle.id, 1)
        for step in handle.steps:
            app.ledger.note("accepted", step.id, sent)
        self._handles.append(handle)

    def _submit_group(self) -> None:
        sent = app.ledger.note("tried", "", "group")
        size = self._chance.choice(GROUP_SIZES)
        members = [app.quick.s(number) for number in range(size)]
        handle = (group(members) | app.gathers.s()).submit()
        app.ledger.note("answered", "group", handle.id, 1)
        for one in (*handle.group.members, *handle.steps):
            app.ledger.note("accepted", one.id, sent)
        self._handles.append(handle)

    def _cancel(self) -> None:
        if not self._handles:
            return
        handle = self._chance.choice(self._handles)
        app.ledger.note("cancels", handle.id)
        verdict = handle.cancel()
        if verdict == "cancelled":
            app.ledger.note("cancelled", handle.id)

    def _await(self) -> None:
        if not self._handles:
            return
        handle = self._chance.choice(self._handles)
        with suppress(*_ENDS):
            app.ledger.note("saw", handle.id, handle.result(timeout=0.5))

    def _pause(self) -> None:
        what = self._chance.choice(("pausable", "pausable", None))
        app.queue.pause(what)
        time.sleep(self._chance.choice((0.1, 0.5)))
        app.queue.resume(what)

    def _count(self) -> None:
        app.ledger.note("counts", 1)
        app.counters.increment(f"page {self._chance.randrange(300)}")
        app.ledger.note("counted", 1)
        app.fields.set(f"field {self._chance.randrange(300)}", "x", ttl=2.0)

    def _replay(self) -> None:
        app.queue.replay_many(task="flaky")

    def _change_limit(self) -> None:
        with suppress(ConfigurationError):  # nobody has submitted such a task yet
            if self._chance.random() < 0.5:
                most = self._chance.randint(1, app.MOST_OF_CUSTOMER)
                app.queue.set_limit("customer", concurrency=most)
            else:
                app.queue.reset_limit("customer")

    def _accept(self, handle: Any, sent: float) -> None:
        app.ledger.note("accepted", handle.id, sent)
        self._handles.append(handle)


_ORDINARY: tuple[Callable[[Random], tuple[Any, tuple[Any, ...]]], ...] = (
    lambda draw: (app.quick, (1, "x" * draw.choice((0, 100, 20_000)))),
    lambda draw: (app.quick, (2,)),
    lambda draw: (app.slow, (draw.uniform(0.0, 0.2),)),
    lambda draw: (app.computes, (draw.uniform(0.0, 0.05),)),
    lambda draw: (app.waits, (draw.uniform(0.0, 1.0),)),
    lambda draw: (app.flaky, (1,)),
    lambda draw: (app.broken, (1,)),
    lambda draw: (app.delicate, (draw.uniform(0.0, 0.2),)),
    lambda draw: (app.limited, (draw.randrange(5), draw.uniform(0.0, 0.1))),
    lambda draw: (app.rated, (draw.choice("abcdef"),)),
    lambda draw: (app.brief, (1,)),
    lambda draw: (app.pausable, (1,)),
    lambda draw: (app.stranger, (1,)),
)
